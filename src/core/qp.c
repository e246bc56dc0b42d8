// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP's life as its driver sees it: init, start, post, close, end. States: machine.c.
#include "core/qp.h"

#include "core/completion.h"
#include "core/machine.h"
#include "core/promise.h"
#include "core/rx_parts.h"
#include "core/tx_frame.h"

void aw_qp_init(struct aw_qp *qp, const struct aw_qp_mem *mem, const struct aw_ops *ops, void *ctx,
		const void *pd)
{
	*qp = (struct aw_qp){
		.ops = ops,
		.ctx = ctx,
		.pd = pd,
		.recv_pd = pd,
		.srq = mem->srq,
		.remote_access = AW_ACCESS_REMOTE,
		.irq = mem->irq,
		.irq_capacity = mem->irq_capacity,
		.orq = mem->orq,
		.orq_capacity = mem->orq_capacity,
		.state = AW_QP_IDLE,
	};
	aw_sq_init(&qp->sq, mem->sq, mem->sq_capacity, aw_sq_stride(mem->sge_max, mem->inline_max));
}

struct aw_stream aw_stream_agreed(const struct aw_mpa_result *result, bool initiator)
{
	return (struct aw_stream){
		.initiator = initiator,
		.crc = result->crc,
		.markers_tx = result->markers_tx,
		.markers_rx = result->markers_rx,
		.p2p = result->p2p,
		.rtr = result->rtr,
		.ird = result->ird,
		.ord = result->ord,
		.extensions = result->extensions,
		.large_fpdus = result->large_fpdus || result->large_any,
		.placement = result->placement,
		.moves = result->host,
	};
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

void aw_qp_start(struct aw_qp *qp, const struct aw_stream *stream)
{
	AW_PROMISE(!qp->local_closed);
	qp->stream = *stream;
	qp->stream.ird = min_u32(stream->ird, qp->irq_capacity);
	qp->stream.ord = min_u32(stream->ord, qp->orq_capacity);
	qp->mulpdu = aw_tx_mulpdu(stream);
	qp->acks &= qp->stream.ord > 0;
	for (unsigned int qn = 0; qn < 4; qn++)
		qp->tx_msn[qn] = qp->rx_msn[qn] = 1; /* RFC 5041 4.3 */
	qp->next_sink_stag = stream->stag_seed;
	qp->tx_used = false;
	qp->move.kind = MOVE_MSG_NONE;
	qp->not_ready_told = qp->peer_not_ready = false;
	qp->rtr_due = stream->initiator && stream->p2p;
	qp->rtr_awaited = !stream->initiator && stream->p2p && (stream->rtr & MPA_RTR_SEND);
	AW_PROMISE(!qp->rtr_due || stream->rtr != MPA_RTR_READ || qp->stream.ord > 0);
	aw_machine_go(qp, AW_QP_RTS);
}

void aw_qp_set_emss(struct aw_qp *qp, uint32_t emss)
{
	AW_PROMISE(qp->state != AW_QP_IDLE);
	qp->stream.emss = emss;
	qp->mulpdu = aw_tx_mulpdu(&qp->stream);
}

static bool takes_posts(const struct aw_qp *qp)
{
	bool early = qp->posts_early && qp->state == AW_QP_IDLE;

	return (early || aw_machine_runs(qp)) && !qp->local_closed;
}

void aw_qp_post(struct aw_qp *qp)
{
	struct aw_swqe *wqe = aw_sq_at(&qp->sq, qp->sq.tail);

	AW_PROMISE(qp->state != AW_QP_IDLE || qp->posts_early);
	wqe->done = !takes_posts(qp);
	wqe->status = wqe->done ? AW_WC_WR_FLUSH_ERR : AW_WC_SUCCESS;
	wqe->end_pos = 0;
	aw_sq_commit(&qp->sq);
	if (wqe->done)
		aw_completion_retire(qp);
}

void aw_qp_recv_posted(struct aw_qp *qp)
{
	if (qp->flushed)
		aw_completion_flush_rq(qp);
}

void aw_qp_close(struct aw_qp *qp)
{
	qp->local_closed = true;
	if (qp->state == AW_QP_RTS)
		aw_machine_go(qp, AW_QP_CLOSING);
}

void aw_qp_peer_closed(struct aw_qp *qp, size_t rest)
{
	qp->peer_closed = true;
	qp->peer_not_ready = false; /* it says no more when it is ready */
	if (qp->state == AW_QP_IDLE || (aw_machine_runs(qp) && rest > 0))
		aw_machine_end(qp, AW_E_MPA_CLOSED);
	else if (qp->state == AW_QP_RTS)
		aw_machine_go(qp, AW_QP_CLOSING);
}

void aw_qp_abort(struct aw_qp *qp, enum aw_error why)
{
	aw_machine_end(qp, why);
}

/* The WR that has the next octets for TCP, or NULL. */
static struct aw_swqe *wqe_unsent(struct aw_qp *qp)
{
	for (uint32_t i = qp->sq.head; i != qp->sq.next + qp->tx_begun; i++) {
		struct aw_swqe *wqe = aw_sq_at(&qp->sq, i);
		bool unsent = i == qp->sq.next || wqe->end_pos > qp->sent_pos;

		if (unsent && aw_op_is_one_way((enum aw_op)wqe->op))
			return wqe;
	}
	return NULL;
}

void aw_qp_payload_gone(struct aw_qp *qp)
{
	struct aw_swqe *wqe = wqe_unsent(qp);

	if (wqe) {
		wqe->done = true;
		wqe->status = AW_WC_LOC_PROT_ERR;
	}
	aw_machine_end(qp, AW_E_LOCAL_CATASTROPHIC);
}

void aw_qp_give_up(struct aw_qp *qp, enum aw_wc_status status)
{
	AW_PROMISE(status != AW_WC_SUCCESS);
	if (qp->state < AW_QP_TERMINATE && aw_sq_count(&qp->sq) > 0) {
		struct aw_swqe *wqe = aw_sq_at(&qp->sq, qp->sq.head);

		wqe->done = true;
		wqe->status = (uint8_t)status;
	}
	aw_machine_end(qp, AW_E_MPA_CLOSED);
}

void aw_qp_recall(struct aw_qp *qp)
{
	if (qp->unreliable)
		aw_rx_drop_half(qp);
	AW_PROMISE(qp->sq.next == qp->sq.head && !qp->tx_begun && !qp->rx_send.active);
	aw_machine_go(qp, AW_QP_IDLE);
	qp->peer_ready = qp->peer_closed = qp->rtr_due = qp->rtr_awaited = false;
	qp->tx_pos = qp->sent_pos = qp->rx_pos = 0;
	qp->acked_pos = qp->asked_pos = qp->need_pos = qp->gone_pos = 0;
	qp->ack_asked = false;
	qp->rx_held = 0;
	qp->rx_imm = (struct aw_rx_imm){ 0 };
	qp->irq_head = qp->irq_count = qp->orq_head = qp->orq_count = 0;
}

void aw_qp_taken(struct aw_qp *qp)
{
	qp->acked_pos = qp->sent_pos;
	aw_completion_retire(qp);
}

void aw_qp_terminate(struct aw_qp *qp, enum aw_error why)
{
	struct term_msg msg = { .error = why };

	if (qp->state == AW_QP_IDLE)
		aw_machine_end(qp, why);
	else
		aw_machine_terminate(qp, why, &msg);
}
