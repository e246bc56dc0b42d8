// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Transmit: the core's FPDUs in batches, one send each, or straight into memory that the peer reads. A batch stays with the QP
// only while the carrier has not taken all of it.
#include "core/tx.h"

#include "net/base/probe.h"
#include "net/mem/pool.h"
#include "net/qp/capture.h"
#include "net/qp/carrier.h"
#include "net/qp/move.h"
#include "net/qp/uqp_sock.h"

#include <errno.h>
#include <stddef.h>
#include <sys/uio.h>

#define ROUNDS_MAX 16 /* a call, so that other QPs have their turn */
#define PLACE_BYTES 16384 /* that the peer is told of at once, and one FPDU more */
#define LOOK_BYTES (1u << 20) /* sent between two looks at TCP's path */

_Static_assert(sizeof(struct aw_iov) == sizeof(struct iovec) &&
		       offsetof(struct aw_iov, base) == offsetof(struct iovec, iov_base) &&
		       offsetof(struct aw_iov, len) == offsetof(struct iovec, iov_len),
	       "aw_iov is passed to sendmsg as iovec");

/* RFC 5044 3: a change of the path is followed, but not at the cost of a system call for each FPDU. */
static void look_at_path(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (qp->core.tx_pos - qp->looked_pos < LOOK_BYTES)
		return;
	qp->looked_pos = qp->core.tx_pos;
	if (!qp->core.stream.large_fpdus)
		aw_qp_set_emss(&qp->core, qp->out->segment_size(qp));
	if (qp->out->is_socket)
		aw_send_buffer_look(&qp->send_buffer, qp->fd);
}

/* Puts the FPDUs that are due now into the batch. *idle: the core has no more. False when there are none. */
static bool fill(struct aw_uqp *qp, struct aw_batch *batch, bool *idle) AW_REQUIRES(qp->lock)
{
	struct aw_tx_out out = {
		.arena = batch->arena,
		.arena_len = sizeof(batch->arena),
		.iov = batch->iov,
		.iov_max = AW_BATCH_IOV,
	};
	uint64_t pos = qp->core.tx_pos;
	bool more = !aw_move_fill(qp, &out);

	look_at_path(qp);
	*idle = false;
	while (more)
		more = aw_tx_next(&qp->core, &out) == AW_TX_FPDU && out.octets < AW_BATCH_BYTES &&
		       !(*idle = aw_tx_is_idle(&qp->core));
	qp->touched |= qp->core.tx_used;
	batch->iov_count = out.iov_count;
	if (out.iov_count > 0 && aw_capture_is_asked(qp))
		aw_capture_out(qp, pos, batch->iov, batch->iov_count);
	return out.iov_count > 0;
}

/* Drops n bytes from the front of the batch. */
static void advance(struct aw_batch *batch, size_t n)
{
	while (n > 0) {
		struct aw_iov *iov = &batch->iov[batch->iov_sent];

		if (n < iov->len) {
			iov->base = (uint8_t *)iov->base + n;
			iov->len -= n;
			return;
		}
		n -= iov->len;
		batch->iov_sent++;
	}
}

/* One send for the QP's batch. True when all of it went. */
static bool send_batch(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	struct aw_batch *batch = qp->batch;
	size_t count = batch->iov_count - batch->iov_sent;
	ssize_t n = qp->out->send(qp, &batch->iov[batch->iov_sent], count);

	if (n >= 0) {
		aw_probe_transmit(qp->qpn, (size_t)n);
		advance(batch, (size_t)n);
		aw_tx_sent(&qp->core, (size_t)n);
		return batch->iov_sent == batch->iov_count;
	}
	if (errno == EFAULT) {
		aw_qp_payload_gone(&qp->core);
	} else if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS &&
		   !aw_uqp_ends_quietly(qp)) {
		/* A stream that ends quietly ends once all bytes that came before are read. */
		aw_uqp_read_rest(qp);
		aw_uqp_stream_lost(qp);
	}
	return false;
}

static void put_batch(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	aw_batch_put(qp->batch);
	qp->batch = NULL;
}

/* The result of a round. */
enum round {
	ROUND_SENT, /* all that it took; there may be more */
	ROUND_LAST, /* likewise, and the core has no more */
	ROUND_BLOCKED, /* the carrier takes no more, or an error ends the stream */
	ROUND_OVER, /* nothing is due */
};

static enum round send_round(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	bool empty = !qp->batch, idle = false;

	if (empty)
		qp->batch = aw_batch_get();
	if (!qp->batch) {
		aw_uqp_starve(qp);
		return ROUND_OVER;
	}
	if (empty && !fill(qp, qp->batch, &idle)) {
		put_batch(qp);
		return ROUND_OVER;
	}
	if (!send_batch(qp))
		return ROUND_BLOCKED;
	put_batch(qp);
	aw_move_sent(qp);
	return idle ? ROUND_LAST : ROUND_SENT;
}

/* Writes FPDUs where the peer reads them. */
static enum round place_round(struct aw_uqp *qp, uint8_t *place, size_t room) AW_REQUIRES(qp->lock)
{
	struct aw_iov iov[2]; /* one is used, and another free: the FPDUs are adjacent */
	struct aw_tx_out out = { .arena = place, .arena_len = room, .iov = iov, .iov_max = 2 };
	uint64_t pos = qp->core.tx_pos;
	bool idle = false;
	enum aw_tx tx;

	do
		tx = aw_tx_next(&qp->core, &out);
	while (tx == AW_TX_FPDU && out.octets < PLACE_BYTES && !(idle = aw_tx_is_idle(&qp->core)));
	qp->touched |= qp->core.tx_used;
	if (out.octets == 0)
		return tx == AW_TX_FULL ? ROUND_BLOCKED : ROUND_OVER;
	if (aw_capture_is_asked(qp))
		aw_capture_out(qp, pos, iov, out.iov_count);
	qp->out->publish(qp, out.octets);
	aw_probe_transmit(qp->qpn, out.octets);
	aw_tx_sent(&qp->core, out.octets);
	return idle ? ROUND_LAST : ROUND_SENT;
}

static enum round transmit_round(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	size_t room;
	uint8_t *place = qp->out->place && !qp->batch ? qp->out->place(qp, &room) : NULL;

	return place ? place_round(qp, place, room) : send_round(qp);
}

void aw_uqp_transmit(struct aw_uqp *qp)
{
	/* The WRs of a waiting batch were flushed: their memory is the program's again. */
	bool over = qp->core.state == AW_QP_ERROR || qp->lost ||
		    (qp->peer_gone && aw_uqp_ends_quietly(qp));
	enum round round = ROUND_SENT;

	if (!over && qp->tx_blocked && !qp->out->has_room(qp))
		return;
	qp->tx_blocked = false;
	if (over)
		return;
	for (int i = 0; i < ROUNDS_MAX && round <= ROUND_LAST; i++) {
		if (!qp->batch && !aw_move_is_due(qp) &&
		    (round == ROUND_LAST || aw_tx_is_idle(&qp->core)))
			return;
		round = transmit_round(qp);
	}
	qp->tx_blocked = round != ROUND_OVER && qp->core.state != AW_QP_ERROR;
}
