// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiving: the part that all carriers (net/qp/carrier.h) share, and the end of the stream. A
// stage stays with the QP only while it holds the beginning of an FPDU, and only few QPs keep a
// large one.
#include "base/log.h"
#include "core/rx.h"
#include "net/mem/pool.h"
#include "net/qp/capture.h"
#include "net/qp/carrier.h"
#include "net/qp/move.h"
#include "net/qp/rnr.h"
#include "net/qp/uqp_sock.h"

#include <string.h>

/* The program still gets the message of the peer that waits for its receive, and those behind it. */
static void end_quietly(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (aw_rnr_waits(qp))
		qp->peer_gone = true;
	else
		qp->lost = true;
}

void aw_uqp_stream_lost(struct aw_uqp *qp)
{
	qp->reset_seen = true;
	if (aw_uqp_ends_quietly(qp))
		end_quietly(qp);
	else
		aw_qp_abort(&qp->core, AW_E_MPA_CLOSED);
}

void aw_uqp_read_rest(struct aw_uqp *qp)
{
	uint64_t before;

	do {
		before = qp->core.rx_pos;
		qp->in->receive(qp, false);
	} while (qp->core.rx_pos != before);
}

/*
 * A program may end as soon as it has what it waited for, before its end has answered our last
 * request: where the end is quiet, bytes that its TCP has acknowledged count as received.
 */
void aw_uqp_peer_closed(struct aw_uqp *qp, size_t rest)
{
	if (!aw_uqp_ends_quietly(qp)) {
		aw_qp_peer_closed(&qp->core, rest);
		return;
	}
	/* Behind a reset, which came while a message waited, TCP has dropped what it had not delivered. */
	if (!qp->reset_seen && qp->out->has_taken_all(qp))
		aw_qp_taken(&qp->core);
	end_quietly(qp);
}

void aw_uqp_starve(struct aw_uqp *qp)
{
	if (qp->ending.begun)
		aw_qp_abort(&qp->core, AW_E_LOCAL_CATASTROPHIC);
	else
		qp->starved = true;
}

/* Behind the peer's last FPDU over TCP its bytes there are bells. */
void aw_uqp_use(struct aw_uqp *qp, struct aw_stage *stage)
{
	bool by_socket = qp->in->is_socket;

	do {
		if (aw_capture_is_asked(qp))
			aw_capture_in(qp, stage->buf, stage->len);
		size_t used = aw_rx_octets(&qp->core, stage->buf, stage->len);

		stage->len -= used;
		if (stage->len > 0 && used > 0)
			memmove(stage->buf, stage->buf + used, stage->len);
	} while (aw_move_take(qp) && qp->in->is_socket);
	if (by_socket && !qp->in->is_socket)
		stage->len = 0;
}

/* The program can mend it. Towards a peer that agreed on nothing it is the usual case. */
static void tell_full(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (!qp->core.keeps || qp->rnr_told)
		return;
	qp->rnr_told = true;
	aw_log(AW_LOG_WARN,
	       "qp 0x%x: a message has no receive, and no more can be kept behind it (%zu bytes are): answers to this "
	       "end wait as well until the program posts receives",
	       qp->qpn, qp->core.stash.octets);
}

void aw_uqp_retry_held(struct aw_uqp *qp, struct aw_stage *stage)
{
	aw_rnr_try(qp);
	aw_rx_stashed(&qp->core);
	aw_uqp_use(qp, stage);
	/* Where the stream is read on, its end is found behind the peer's last answers. */
	if (!aw_rnr_waits(qp) || !qp->core.rx_held)
		return;
	tell_full(qp);
	/* In the roce persona the program still gets what the peer sent before it left. */
	if (qp->by_rc)
		qp->peer_gone |= qp->in->has_ended(qp);
	else if (qp->in->is_reset(qp))
		aw_uqp_stream_lost(qp);
}

bool aw_uqp_may_read(const struct aw_uqp *qp)
{
	return !qp->lost && !qp->core.peer_closed && qp->core.state != AW_QP_ERROR &&
	       !aw_rnr_stops_reading(qp);
}

struct aw_stage *aw_uqp_take_stage(struct aw_uqp *qp)
{
	struct aw_stage *stage = qp->stage ? aw_stage_resume(qp->stage) : aw_stage_get();

	if (stage)
		qp->stage = NULL;
	else
		aw_uqp_starve(qp);
	return stage;
}

void aw_uqp_leave_stage(struct aw_uqp *qp, struct aw_stage *stage)
{
	if (stage->len > 0 && !qp->lost && qp->core.state != AW_QP_ERROR)
		qp->stage = aw_stage_keep(stage);
	else
		aw_stage_put(stage);
}
