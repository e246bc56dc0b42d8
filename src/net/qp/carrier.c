// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The choice of a carrier for each direction of the stream.
#include "net/qp/carrier.h"

#include "base/log.h"
#include "net/qp/cq_qps.h"
#include "net/qp/stat_qp.h"
#include "net/qp/uqp_sock.h"
#include "net/tls/tls.h"

#include <stdatomic.h>

static void show_path(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	static const char *const names[2][2] = { { "tcp", "memory" }, { "tls", "tls+memory" } };
	bool memory = !qp->in->is_socket && !qp->out->is_socket;

	aw_stat_write_path(qp);
	if ((memory || !qp->ring) && aw_log_level() >= AW_LOG_INFO)
		aw_log(AW_LOG_INFO, "qp 0x%x path %s", qp->qpn, names[qp->tls != NULL][memory]);
}

static void count(struct aw_uqp *qp, uint32_t change)
{
	atomic_fetch_add_explicit(&qp->attr.send_cq->over_memory, change, memory_order_relaxed);
	atomic_fetch_add_explicit(&qp->attr.recv_cq->over_memory, change, memory_order_relaxed);
}

void aw_carrier_begin(struct aw_uqp *qp)
{
	qp->ring = NULL;
	show_path(qp);
}

/*
 * Bytes that reach no wire need no CRC. The program still sees the CRC setting that MPA start-up
 * agreed on.
 */
void aw_carrier_move_in(struct aw_uqp *qp)
{
	aw_cq_sets_leave(qp);
	qp->in = qp->in->moved;
	count(qp, 1);
	qp->core.stream.crc_ended_rx = true;
	qp->core.stream.moves = false;
	show_path(qp);
}

void aw_carrier_move_out(struct aw_uqp *qp)
{
	qp->out = qp->out->moved;
	qp->core.stream.crc_ended_tx = true;
	qp->core.copies = true;
	qp->core.stream.fpdu_max = 0;
	aw_qp_set_emss(&qp->core, qp->out->segment_size(qp));
	show_path(qp);
}

void aw_carrier_socket_ended(struct aw_uqp *qp, size_t rest)
{
	bool in_memory = !qp->out->is_socket;

	if (in_memory)
		qp->ring->gone = true;
	if (in_memory && aw_carrier_is_cut(qp))
		aw_uqp_stream_lost(qp);
	else
		aw_uqp_peer_closed(qp, rest);
}

void aw_carrier_lose(struct aw_uqp *qp)
{
	const char *cause = qp->tls ? aw_tls_cause(qp->tls) : "";

	if (*cause)
		aw_log(aw_log_has_room() ? AW_LOG_WARN : AW_LOG_INFO,
		       "qp 0x%x: stream lost cause %s", qp->qpn, cause);
	aw_uqp_stream_lost(qp);
}

bool aw_carrier_waits_for_socket(struct aw_uqp *qp, bool reads)
{
	if (!qp->tx_blocked || qp->out->is_socket)
		return qp->tx_blocked;
	if (!reads)
		return false;
	aw_duplex_sleep(&qp->ring->duplex);
	return aw_carrier_awaits_room(qp);
}

void aw_carrier_end(struct aw_uqp *qp, bool forgets)
{
	if (!qp->in->is_socket)
		count(qp, -1u);
	if (qp->ring && !forgets)
		aw_duplex_leave(&qp->ring->duplex);
	aw_host_ring_free(qp->ring);
	qp->ring = NULL;
	/* In the child of a fork the session stays: a lock of OpenSSL's may be taken for ever. */
	if (qp->tls && !forgets) {
		if (!qp->reset_seen)
			(void)aw_tls_finish(qp->tls);
		aw_tls_free(qp->tls);
	}
	qp->tls = NULL;
}
