// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The SQ's WRs, strictly in order, as DDP segments. A WR is checked as a whole before its first
// octet goes out; the program's memory that it reads is checked again for every segment.
#include "core/ack.h"
#include "core/atomic.h"
#include "core/completion.h"
#include "core/machine.h"
#include "core/promise.h"
#include "core/reads.h"
#include "core/tx_parts.h"
#include "core/xrc.h"

/* Some peers take no STag of 0, even where nothing is placed (RFC 5041 5.2 asks for none). */
#define STAG_OF_NOTHING 1

_Static_assert(AW_INLINE_MAX <= AW_TX_COPY_MAX, "inline octets are never lent");

static struct aw_swqe *next_wqe(const struct aw_qp *qp)
{
	return aw_sq_at(&qp->sq, qp->sq.next);
}

bool aw_tx_sq_waits(const struct aw_qp *qp)
{
	const struct aw_swqe *wqe = next_wqe(qp);

	if (qp->sq.next == qp->sq.tail)
		return false;
	if (qp->sq_halts && !qp->tx_begun)
		return true;
	if ((wqe->flags & AW_WR_FENCE) && qp->orq_count > 0)
		return true;
	/* After the peer's FIN nothing can answer the request. */
	return aw_op_is_request(wqe->op) && qp->stream.ord > 0 &&
	       (aw_orq_is_full(qp) || qp->peer_closed);
}

/* Called when the WR at next needs no more transmission. */
static void pass(struct aw_qp *qp)
{
	struct aw_swqe *wqe = next_wqe(qp);

	qp->tx_used = true;
	wqe->end_pos = qp->tx_pos;
	aw_ack_passed(qp, wqe);
	qp->sq.next++;
	qp->tx_begun = false;
	qp->tx_offset = 0;
}

/*
 * Called when the WR at next cannot be executed. Behind half a message no acknowledgement is
 * requested.
 */
static void fail(struct aw_qp *qp, enum aw_wc_status status)
{
	aw_completion_retire(qp);
	if (qp->tx_begun || !aw_ack_is_awaited(qp))
		aw_machine_fail_wr(qp, next_wqe(qp), status);
}

static enum aw_tx fail_payload(struct aw_qp *qp)
{
	fail(qp, AW_WC_LOC_PROT_ERR);
	return AW_TX_NONE;
}

static bool is_local(const struct aw_swqe *wqe)
{
	return wqe->op == AW_OP_LOCAL_INV || wqe->op == AW_OP_BIND_MW;
}

/* An operation that was refused is not run again while it waits to complete. */
static enum aw_wc_status run_local(struct aw_qp *qp, const struct aw_swqe *wqe)
{
	if (wqe->status != AW_WC_SUCCESS)
		return (enum aw_wc_status)wqe->status;
	if (wqe->op == AW_OP_BIND_MW)
		return qp->ops->bind(qp->ctx, wqe);
	return qp->ops->invalidate(qp->ctx, wqe->stag, false) ? AW_WC_MW_BIND_ERR : AW_WC_SUCCESS;
}

/* False when the WR at next is not a local operation, or was not executed. */
static bool next_local(struct aw_qp *qp)
{
	struct aw_swqe *wqe = next_wqe(qp);
	enum aw_wc_status status;

	if (!wqe->done) {
		if (!is_local(wqe))
			return false;
		status = run_local(qp, wqe);
		if (status != AW_WC_SUCCESS) {
			wqe->status = (uint8_t)status;
			fail(qp, status);
			return false;
		}
	}
	wqe->done = true;
	qp->sq.next++;
	aw_ack_local(qp, wqe);
	return true;
}

void aw_tx_local(struct aw_qp *qp)
{
	while (aw_machine_runs(qp) && qp->sq.next != qp->sq.tail && !aw_tx_sq_waits(qp) &&
	       next_local(qp))
		;
	aw_completion_retire(qp);
}

static struct aw_stretch whole_of(const struct aw_qp *qp, const struct aw_swqe *wqe,
				  uint32_t access)
{
	return (struct aw_stretch){
		.sge = wqe->sge,
		.sge_count = wqe->sge_count,
		.pd = qp->pd,
		.access = access,
		.len = wqe->flags & AW_WR_INLINE ? 0 : wqe->len,
	};
}

static enum aw_wc_status check_payload(const struct aw_qp *qp, const struct aw_swqe *wqe,
				       uint32_t access)
{
	const struct aw_stretch whole = whole_of(qp, wqe, access);

	return aw_spans_check(qp, &whole) ? AW_WC_LOC_PROT_ERR : AW_WC_SUCCESS;
}

static enum aw_wc_status check_request(const struct aw_qp *qp, const struct aw_swqe *wqe)
{
	if (qp->stream.ord == 0)
		return AW_WC_LOC_QP_OP_ERR;
	if (wqe->op == AW_OP_FLUSH)
		return AW_WC_SUCCESS;
	if (wqe->op != AW_OP_READ && wqe->len != AW_ATOMIC_LEN)
		return AW_WC_LOC_LEN_ERR;
	return check_payload(qp, wqe, wqe->op == AW_OP_ATOMIC_WRITE ? 0 : AW_ACCESS_LOCAL_WRITE);
}

/* Checks a WR that is about to start: a status, or SUCCESS. */
static enum aw_wc_status check_wr(const struct aw_qp *qp, const struct aw_swqe *wqe)
{
	bool tagged = false;

	if ((aw_op_is_extension(wqe->op) && !qp->stream.extensions) ||
	    (aw_op_is_placement(wqe->op) && !qp->stream.placement))
		return AW_WC_LOC_QP_OP_ERR;
	switch ((enum aw_op)wqe->op) {
	case AW_OP_READ:
	case AW_OP_CMP_SWAP:
	case AW_OP_FETCH_ADD:
	case AW_OP_ATOMIC_WRITE:
	case AW_OP_FLUSH:
		return check_request(qp, wqe);
	case AW_OP_WRITE:
	case AW_OP_WRITE_IMM:
		tagged = true;
		break;
	case AW_OP_SEND:
	case AW_OP_SEND_INV:
		break;
	case AW_OP_SEND_IMM:
		/* Its Immediate goes out before the payload is looked at. */
		return check_payload(qp, wqe, 0);
	case AW_OP_LOCAL_INV:
	case AW_OP_BIND_MW:
		return AW_WC_LOC_QP_OP_ERR;
	}
	if (wqe->len <= aw_tx_payload_max(qp, tagged))
		return AW_WC_SUCCESS; /* its one segment is checked all the same */
	return check_payload(qp, wqe, 0);
}

/* Holds the octets of a Write or Send that its next segment carries. */
static inline enum aw_error hold_payload(const struct aw_qp *qp, struct aw_swqe *wqe, uint32_t n,
					 struct aw_spans *spans)
{
	const struct aw_stretch stretch = {
		.sge = wqe->sge,
		.sge_count = wqe->sge_count,
		.pd = qp->pd,
		.offset = qp->tx_offset,
		.len = n,
	};
	uint8_t *data = wqe->data; /* as long as the slot's stride allows */

	if (!(wqe->flags & AW_WR_INLINE))
		return aw_spans_hold(qp, &stretch, spans);
	aw_spans_own(spans, data + qp->tx_offset, n);
	return AW_OK;
}

/* The octets of an Atomic Write. False when their memory is gone. */
static bool read_write_data(const struct aw_qp *qp, struct aw_swqe *wqe, uint64_t *data)
{
	uint8_t octets[AW_ATOMIC_LEN];
	struct aw_spans spans;
	bool read;

	if (hold_payload(qp, wqe, AW_ATOMIC_LEN, &spans))
		return false;
	read = aw_spans_gather(qp, &spans, octets, NULL);
	aw_spans_put(qp, &spans);
	if (read)
		*data = aw_atomic_write_data(octets);
	return read;
}

static enum aw_tx next_request(struct aw_qp *qp, struct aw_tx_out *out, struct aw_swqe *wqe)
{
	const struct aw_tx_read read = {
		.sq_index = qp->sq.next,
		.size = wqe->len,
		.src_stag = wqe->stag,
		.src_to = wqe->to,
	};
	uint64_t write_data = 0;
	enum aw_tx tx;

	if (wqe->op == AW_OP_READ)
		tx = aw_tx_read_request(qp, out, &read);
	else if (wqe->op == AW_OP_FLUSH)
		tx = aw_tx_flush_request(qp, out);
	else if (wqe->op == AW_OP_ATOMIC_WRITE && !read_write_data(qp, wqe, &write_data))
		return fail_payload(qp);
	else
		tx = aw_tx_atomic_request(qp, out, write_data);
	if (tx == AW_TX_FPDU)
		pass(qp);
	return tx;
}

static enum rdmap_opcode send_opcode(const struct aw_swqe *wqe)
{
	if (wqe->op == AW_OP_SEND_INV)
		return wqe->flags & AW_WR_SOLICITED ? RDMAP_SEND_SE_INV : RDMAP_SEND_INV;
	return wqe->flags & AW_WR_SOLICITED ? RDMAP_SEND_SE : RDMAP_SEND;
}

static bool is_write(const struct aw_swqe *wqe)
{
	return wqe->op == AW_OP_WRITE || wqe->op == AW_OP_WRITE_IMM;
}

static uint8_t write_ctrl(const struct aw_swqe *wqe)
{
	uint8_t ctrl = rdmap_ctrl(RDMAP_WRITE);

	return wqe->op == AW_OP_WRITE_IMM ? (uint8_t)(ctrl | RDMAP_CTRL_IMM) : ctrl;
}

static inline struct ddp_hdr segment_hdr(const struct aw_qp *qp, const struct aw_swqe *wqe,
					 bool last)
{
	if (is_write(wqe)) {
		return (struct ddp_hdr){
			.tagged = true,
			.last = last,
			.ulp_ctrl = write_ctrl(wqe),
			.stag = wqe->len == 0 && wqe->stag == 0 ? STAG_OF_NOTHING : wqe->stag,
			.to = wqe->to + qp->tx_offset,
		};
	}
	return (struct ddp_hdr){
		.last = last,
		.ulp_ctrl = rdmap_ctrl(send_opcode(wqe)),
		.ulp_rsvd = wqe->op == AW_OP_SEND_INV ? wqe->inv_or_imm : aw_xrc_srqn(qp, wqe),
		.qn = DDP_QN_SEND,
		.msn = qp->tx_msn[DDP_QN_SEND],
		.mo = qp->tx_offset,
	};
}

/* Called when the batch has taken a part of the WR. */
static void begin(struct aw_qp *qp, struct aw_swqe *wqe)
{
	if (!qp->tx_begun)
		wqe->msn = qp->tx_msn[DDP_QN_SEND];
	qp->tx_begun = qp->tx_used = true;
}

/* Called when the batch has taken a segment of n octets. */
static void advance(struct aw_qp *qp, struct aw_swqe *wqe, uint32_t n)
{
	begin(qp, wqe);
	qp->tx_offset += n;
	if (qp->tx_offset < wqe->len || wqe->op == AW_OP_WRITE_IMM)
		return;
	qp->tx_msn[DDP_QN_SEND] += !is_write(wqe);
	wqe->done = true;
	pass(qp);
}

/* A Write's Immediate comes behind its payload, a Send's before. */
static bool immediate_is_due(const struct aw_qp *qp, const struct aw_swqe *wqe)
{
	return (wqe->op == AW_OP_WRITE_IMM && qp->tx_offset == wqe->len) ||
	       (wqe->op == AW_OP_SEND_IMM && !qp->tx_begun);
}

static enum aw_tx next_immediate(struct aw_qp *qp, struct aw_tx_out *out, struct aw_swqe *wqe)
{
	bool of_write = wqe->op == AW_OP_WRITE_IMM;
	bool solicited = of_write && (wqe->flags & AW_WR_SOLICITED);
	const struct rdmap_imm imm = {
		.data = wqe->inv_or_imm,
		.length = of_write ? wqe->len : RDMAP_IMM_OF_SEND,
	};
	const struct ddp_hdr hdr = {
		.last = true,
		.ulp_ctrl = rdmap_ctrl(solicited ? RDMAP_IMM_SE : RDMAP_IMM),
		.ulp_rsvd = of_write ? aw_xrc_srqn(qp, wqe) : 0,
		.qn = DDP_QN_SEND,
		.msn = qp->tx_msn[DDP_QN_SEND],
	};
	uint8_t octets[RDMAP_IMM_LEN];
	enum aw_tx tx;

	rdmap_imm_put(&imm, octets);
	tx = aw_tx_octets(qp, out, &hdr, octets, sizeof(octets));
	if (tx != AW_TX_FPDU)
		return tx;
	begin(qp, wqe);
	qp->tx_msn[DDP_QN_SEND]++;
	if (of_write) {
		wqe->done = true;
		pass(qp);
	}
	return tx;
}

static enum aw_tx next_segment(struct aw_qp *qp, struct aw_tx_out *out, struct aw_swqe *wqe)
{
	uint32_t max = aw_tx_payload_max(qp, is_write(wqe));
	uint32_t left = wqe->len - qp->tx_offset;
	uint32_t n = left < max ? left : max;
	struct aw_tx_seg seg;
	enum aw_tx tx;

	if (hold_payload(qp, wqe, n, &seg.payload))
		return fail_payload(qp);
	seg.hdr = segment_hdr(qp, wqe, n == left);
	seg.len = n;
	seg.copy = false;
	tx = aw_tx_frame(qp, out, &seg);
	aw_spans_put(qp, &seg.payload);
	if (tx == AW_TX_FPDU)
		advance(qp, wqe, n);
	return tx == AW_TX_GONE ? fail_payload(qp) : tx;
}

/* True when the WR at next is a message whose turn has come. One that is done came after a close, and will be flushed. */
static inline bool has_message(const struct aw_qp *qp)
{
	const struct aw_swqe *wqe = next_wqe(qp);

	return qp->sq.next != qp->sq.tail && !wqe->done && !is_local(wqe) && !aw_tx_sq_waits(qp);
}

enum aw_tx aw_tx_sq(struct aw_qp *qp, struct aw_tx_out *out)
{
	enum aw_wc_status status;
	struct aw_swqe *wqe;

	if (has_message(qp)) {
		/* WRs that were answered complete before one that was fenced behind them goes out. */
		aw_completion_retire(qp);
	} else {
		aw_tx_local(qp);
		if (!aw_machine_runs(qp) || !has_message(qp))
			return AW_TX_NONE;
	}
	wqe = next_wqe(qp);
	status = qp->tx_begun ? AW_WC_SUCCESS : check_wr(qp, wqe);
	if (status != AW_WC_SUCCESS) {
		fail(qp, status);
		return AW_TX_NONE;
	}
	if (aw_op_is_request(wqe->op))
		return next_request(qp, out, wqe);
	if (immediate_is_due(qp, wqe))
		return next_immediate(qp, out, wqe);
	return next_segment(qp, out, wqe);
}

/* False when the WR at next has failed, which ends the QP. */
static bool drop_next(struct aw_qp *qp)
{
	struct aw_swqe *wqe = next_wqe(qp);
	enum aw_wc_status status = AW_WC_SUCCESS;

	if (is_local(wqe))
		status = run_local(qp, wqe);
	else if (!qp->tx_begun)
		status = check_payload(qp, wqe, 0);
	wqe->done = true;
	if (status != AW_WC_SUCCESS) {
		wqe->status = (uint8_t)status;
		aw_machine_end(qp, AW_E_LOCAL_CATASTROPHIC);
		return false;
	}
	pass(qp);
	return true;
}

void aw_tx_drop(struct aw_qp *qp)
{
	if (qp->state >= AW_QP_TERMINATE)
		return;
	/* The rest of the old stream goes nowhere. */
	qp->sent_pos = qp->tx_pos;
	while (qp->sq.next != qp->sq.tail && (qp->tx_begun || !aw_tx_sq_waits(qp)) && drop_next(qp))
		;
	aw_completion_retire(qp);
}

enum aw_tx aw_tx_ack(struct aw_qp *qp, struct aw_tx_out *out)
{
	static const struct aw_tx_read nothing = { .src_stag = STAG_OF_NOTHING, .rtr = true };
	enum aw_tx tx = aw_ack_is_due(qp) ? aw_tx_read_request(qp, out, &nothing) : AW_TX_NONE;

	qp->ack_asked |= tx == AW_TX_FPDU;
	return tx;
}

enum aw_tx aw_tx_rtr(struct aw_qp *qp, struct aw_tx_out *out)
{
	static const struct aw_tx_read nothing = { .src_stag = STAG_OF_NOTHING, .rtr = true };
	bool is_send = qp->stream.rtr == MPA_RTR_SEND;
	struct aw_tx_seg seg = { .payload.count = 0 };
	enum aw_tx tx;

	if (qp->stream.rtr == MPA_RTR_READ) {
		tx = aw_tx_read_request(qp, out, &nothing);
	} else {
		const struct aw_swqe wr = {
			.op = is_send ? AW_OP_SEND : AW_OP_WRITE,
		};

		seg.hdr = segment_hdr(qp, &wr, true);
		tx = aw_tx_frame(qp, out, &seg);
	}
	if (tx == AW_TX_FPDU) {
		/* RFC 5041 4.3: every message of a queue has an MSN, this Send too. */
		qp->tx_msn[DDP_QN_SEND] += is_send;
		qp->rtr_due = false;
	}
	return tx;
}
