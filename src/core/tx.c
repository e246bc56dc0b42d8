// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Chooses the next FPDU: a Terminate, the RTR, else Read Responses and the SQ in turn, so that
// neither direction's Reads nor our own WRs starve. RFC 5044 7.1.2 rule 4 is kept here.
#include "core/tx.h"

#include "core/ack.h"
#include "core/completion.h"
#include "core/machine.h"
#include "core/promise.h"
#include "core/reads.h"
#include "core/tx_parts.h"

/* RFC 5044 7.1.2 rule 4: a responder sends nothing before a valid FPDU arrived. */
static bool must_wait_for_peer(const struct aw_qp *qp)
{
	return !qp->stream.initiator && !qp->peer_ready;
}

static enum aw_tx next_terminate(struct aw_qp *qp, struct aw_tx_out *out)
{
	const struct ddp_hdr hdr = {
		.last = true,
		.ulp_ctrl = rdmap_ctrl(RDMAP_TERMINATE),
		.qn = DDP_QN_TERMINATE,
		.msn = qp->tx_msn[DDP_QN_TERMINATE],
	};
	enum aw_tx tx;

	if (!qp->term_due)
		return AW_TX_NONE;
	tx = aw_tx_octets(qp, out, &hdr, qp->term, qp->term_len);
	if (tx == AW_TX_FPDU)
		qp->term_due = false;
	return tx;
}

/* Answers go out in order, so that those behind a Flush under way wait for it. */
static bool has_answer(const struct aw_qp *qp)
{
	return qp->irq_count > 0 && aw_irq_head(qp)->state != AW_IRQ_RUNNING;
}

static enum aw_tx next_answer(struct aw_qp *qp, struct aw_tx_out *out)
{
	if (!has_answer(qp))
		return AW_TX_NONE;
	switch (aw_irq_head(qp)->kind) {
	case AW_REQUEST_READ:
		return aw_tx_response(qp, out);
	case AW_REQUEST_ATOMIC:
		return aw_tx_atomic_response(qp, out);
	case AW_REQUEST_FLUSH:
		return aw_tx_flush_response(qp, out);
	}
	return AW_TX_NONE;
}

/*
 * RFC 5040 7.1 has the Terminate go out "preferably in the next outgoing RDMA Message". Where
 * completions are those of InfiniBand, requests from before the fault are answered first.
 */
static enum aw_tx next_at_end(struct aw_qp *qp, struct aw_tx_out *out)
{
	enum aw_tx tx = qp->acks && qp->term_due ? next_answer(qp, out) : AW_TX_NONE;

	if (tx != AW_TX_NONE)
		return tx;
	qp->irq_count = 0;
	return next_terminate(qp, out);
}

bool aw_qp_drop_answers(struct aw_qp *qp)
{
	bool any = qp->state == AW_QP_TERMINATE && qp->acks && qp->term_due && qp->irq_count > 0;

	if (any)
		qp->irq_count = 0;
	return any;
}

static enum aw_tx next_message(struct aw_qp *qp, struct aw_tx_out *out)
{
	enum aw_tx tx = AW_TX_NONE;

	if (qp->not_ready != qp->not_ready_told)
		return aw_tx_rnr(qp, out);
	if (qp->rtr_due)
		return aw_tx_rtr(qp, out);
	if ((!has_answer(qp) || !qp->serve_irq_next) && !qp->peer_not_ready)
		tx = aw_tx_sq(qp, out);
	if (tx == AW_TX_NONE && qp->acks && !qp->peer_not_ready && aw_machine_runs(qp))
		tx = aw_tx_ack(qp, out);
	if (tx != AW_TX_NONE) {
		qp->serve_irq_next |= tx == AW_TX_FPDU;
		return tx;
	}
	if (!aw_machine_runs(qp))
		return AW_TX_NONE;
	tx = next_answer(qp, out);
	qp->serve_irq_next &= tx != AW_TX_FPDU;
	return tx;
}

enum aw_tx aw_tx_next(struct aw_qp *qp, struct aw_tx_out *out)
{
	enum aw_tx tx;

	if (must_wait_for_peer(qp)) {
		aw_tx_local(qp);
		return AW_TX_NONE;
	}
	if (aw_machine_runs(qp)) {
		tx = next_message(qp, out);
		if (aw_machine_runs(qp))
			return tx;
		AW_PROMISE(tx == AW_TX_NONE);
	}
	return qp->state == AW_QP_TERMINATE ? next_at_end(qp, out) : AW_TX_NONE;
}

/* True when a message of the SQ, or the Read of core/ack.h, may be due. */
static bool has_request(const struct aw_qp *qp)
{
	return qp->sq.next != qp->sq.tail || (qp->acks && aw_ack_is_due(qp));
}

bool aw_tx_is_idle(struct aw_qp *qp)
{
	if (!aw_machine_runs(qp) || qp->rtr_due || has_answer(qp) ||
	    qp->not_ready != qp->not_ready_told || (has_request(qp) && !qp->peer_not_ready))
		return false;
	aw_completion_retire(qp);
	return aw_machine_runs(qp);
}

void aw_tx_sent(struct aw_qp *qp, size_t n)
{
	AW_PROMISE(n <= qp->tx_pos - qp->sent_pos);
	qp->sent_pos += n;
	aw_completion_retire(qp);
	if (qp->state == AW_QP_TERMINATE)
		aw_completion_flush_unlent(qp);
}

/* True when no message of ours is left that could ever go out. */
static bool is_drained(const struct aw_qp *qp)
{
	if (must_wait_for_peer(qp) && qp->peer_closed)
		return true;
	if (qp->rtr_due || qp->irq_count > 0)
		return false;
	if (qp->peer_closed)
		return qp->sq.next == qp->sq.tail || aw_tx_sq_waits(qp);
	return qp->sq.next == qp->sq.tail && qp->orq_count == 0;
}

bool aw_qp_tx_finished(const struct aw_qp *qp)
{
	bool all_sent = qp->sent_pos == qp->tx_pos;

	switch (qp->state) {
	case AW_QP_IDLE:
	case AW_QP_RTS:
		return false;
	case AW_QP_CLOSING:
		return all_sent && is_drained(qp);
	case AW_QP_TERMINATE:
		return all_sent && !qp->term_due;
	case AW_QP_ERROR:
		return true;
	}
	return true;
}
