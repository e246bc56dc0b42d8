// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RFC 5040 5.5 rule 15: WRs complete in the order they were posted, good or bad.
#include "core/completion.h"

#include "core/ack.h"
#include "core/promise.h"

/* True when nothing more will happen to the WR, and no octet of its payload is lent to TCP. */
static bool is_over(const struct aw_qp *qp, const struct aw_swqe *wqe)
{
	return wqe->done && wqe->end_pos <= aw_ack_reached(qp, wqe);
}

static void complete_send(struct aw_qp *qp, const struct aw_swqe *wqe, enum aw_wc_status status)
{
	struct aw_cqe cqe = {
		.wr_id = wqe->wr_id,
		.status = status,
		.op = (enum aw_op)wqe->op,
		.byte_len = wqe->op == AW_OP_READ || aw_op_is_atomic(wqe->op) ? wqe->len : 0,
	};

	if (qp->tells_each)
		qp->ops->wr_completed(qp->ctx, wqe, status);
	if (status == AW_WC_SUCCESS && !qp->sig_all && !(wqe->flags & AW_WR_SIGNALED))
		return;
	if (status != AW_WC_SUCCESS) {
		cqe.flags = AW_WC_SOLICITED;
		cqe.vendor_err = qp->error;
	}
	qp->ops->complete(qp->ctx, AW_SQ, &cqe);
}

/*
 * Completes the WR at the head. RFC 5040 6.2.1: the fate of a message behind one that failed is not
 * known, though its octets may have gone out.
 */
static void pop(struct aw_qp *qp, enum aw_wc_status status)
{
	struct aw_sq *sq = &qp->sq;

	if (sq->next == sq->head)
		sq->next++;
	if (qp->sq_failed && status == AW_WC_SUCCESS)
		status = AW_WC_WR_FLUSH_ERR;
	qp->sq_failed |= status != AW_WC_SUCCESS;
	/* The end of a local operation is 0: it sent nothing. */
	if (aw_sq_at(sq, sq->head)->end_pos > qp->gone_pos)
		qp->gone_pos = aw_sq_at(sq, sq->head)->end_pos;
	complete_send(qp, aw_sq_at(sq, sq->head), status);
	sq->head++;
}

void aw_completion_retire_done(struct aw_qp *qp)
{
	const struct aw_sq *sq = &qp->sq;

	while (aw_sq_count(sq) > 0) {
		const struct aw_swqe *wqe = aw_sq_at(sq, sq->head);

		if (!is_over(qp, wqe))
			return;
		pop(qp, (enum aw_wc_status)wqe->status);
	}
}

static void flush_sq(struct aw_qp *qp)
{
	const struct aw_sq *sq = &qp->sq;

	while (aw_sq_count(sq) > 0) {
		const struct aw_swqe *wqe = aw_sq_at(sq, sq->head);
		enum aw_wc_status status = AW_WC_WR_FLUSH_ERR;

		/*
		 * A WR that failed has its own status, though its octets may never have gone out.
		 */
		if (is_over(qp, wqe) || (wqe->done && wqe->status != AW_WC_SUCCESS))
			status = (enum aw_wc_status)wqe->status;
		pop(qp, status);
	}
}

void aw_completion_receive(struct aw_qp *qp, struct aw_cqe *cqe)
{
	struct aw_rx_send *send = &qp->rx_send;

	AW_PROMISE(send->active);
	cqe->wr_id = send->recv.wr_id;
	send->active = false;
	qp->ops->complete(qp->ctx, AW_RQ, cqe);
}

static void flush_half_received(struct aw_qp *qp)
{
	struct aw_cqe cqe = {
		.status = qp->rx_send.status,
		.op = AW_OP_SEND,
		.flags = AW_WC_SOLICITED,
		.vendor_err = qp->error,
	};

	if (!qp->rx_send.active && !qp->rx_send.kept)
		return;
	qp->rx_send.active = true;
	qp->rx_send.kept = false;
	if (cqe.status == AW_WC_SUCCESS)
		cqe.status = AW_WC_WR_FLUSH_ERR;
	aw_completion_receive(qp, &cqe);
}

void aw_completion_flush_rq(struct aw_qp *qp)
{
	struct aw_rwqe recv;

	if (qp->srq)
		return;
	while (qp->ops->recv_take(qp->ctx, &recv)) {
		struct aw_cqe cqe = {
			.wr_id = recv.wr_id,
			.status = AW_WC_WR_FLUSH_ERR,
			.op = AW_OP_SEND,
			.flags = AW_WC_SOLICITED,
			.vendor_err = qp->error,
		};

		qp->ops->complete(qp->ctx, AW_RQ, &cqe);
	}
}

void aw_completion_flush(struct aw_qp *qp)
{
	qp->flushed = true;
	flush_sq(qp);
	flush_half_received(qp);
	aw_completion_flush_rq(qp);
}

void aw_completion_flush_unlent(struct aw_qp *qp)
{
	if (!qp->flushed && qp->sent_pos >= qp->flush_pos)
		aw_completion_flush(qp);
}
