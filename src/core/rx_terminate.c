// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The peer's Terminate (RFC 5040 4.8, 5.4): ends the stream and, when it names the message that was
// wrong and that message's WR is still there, decides that WR's status. A Terminate is
// never answered.
#include "core/ack.h"
#include "core/machine.h"
#include "core/reads.h"
#include "core/rx_parts.h"

/* Remote protection errors, of RDMAP and of DDP's tagged buffers. */
static bool is_protection(enum aw_error err)
{
	return aw_error_type(err) == 1 && aw_error_layer(err) <= 1;
}

/* The WR that a Terminate names, and the position that follows from it. */
struct cause {
	/* NULL: not known, or the library itself sent the request (struct aw_orq_entry) */
	struct aw_swqe *wqe;
	uint64_t pos; /* the peer has processed what was sent before; 0: not known */
	bool by_peer; /* the peer itself is at fault, and not what the WR asks for */
};

static enum aw_wc_status status_of(const struct aw_qp *qp, enum aw_error err,
				   const struct cause *cause)
{
	const struct aw_swqe *wqe = cause->wqe;

	if (cause->by_peer)
		return AW_WC_REM_OP_ERR;
	if (is_protection(err))
		return AW_WC_REM_ACCESS_ERR;
	/* Completions are those of InfiniBand, where receiver-not-ready NAKs would have run out. */
	if (err == AW_E_DDP_NO_BUFFER && qp->acks && aw_op_is_one_way(wqe->op))
		return AW_WC_RNR_RETRY_EXC_ERR;
	/* RFC 7306 8.2: the atomic's remote address is not aligned. */
	if (err == AW_E_RDMAP_STREAM_CATASTROPHIC &&
	    (aw_op_is_atomic(wqe->op) || wqe->op == AW_OP_ATOMIC_WRITE))
		return AW_WC_REM_INV_REQ_ERR;
	/* The peer's XRC domain has no SRQ with the number that the WR names. */
	if (err == AW_E_DDP_QN && qp->xrc)
		return AW_WC_REM_INV_REQ_ERR;
	if (err == AW_E_DDP_TOO_LONG || err == AW_E_RDMAP_CANNOT_INVALIDATE)
		return AW_WC_REM_INV_REQ_ERR;
	return AW_WC_REM_OP_ERR;
}

static struct cause cause_of_request(const struct aw_qp *qp, const struct aw_orq_entry *entry)
{
	return (struct cause){
		.wqe = entry->rtr ? NULL : aw_sq_at(&qp->sq, entry->sq_index),
		.pos = entry->ack_pos,
	};
}

/* Finds the Read by the sink STag of the Terminate's Read Request header, else the oldest Read. */
static struct cause read_of(const struct aw_qp *qp, const uint8_t *rdmap)
{
	uint32_t stag = rdmap_read_req_get(rdmap).sink_stag;
	struct cause oldest = { 0 };

	for (uint32_t i = 0; i < qp->orq_count; i++)
		if (aw_orq_at(qp, i)->sink_stag == stag &&
		    aw_orq_at(qp, i)->kind == AW_REQUEST_READ)
			return cause_of_request(qp, aw_orq_at(qp, i));
	if (aw_orq_awaits(qp, AW_REQUEST_READ))
		oldest.wqe = cause_of_request(qp, aw_orq_at(qp, 0)).wqe;
	return oldest;
}

/* Finds the request with this MSN: those outstanding have the last MSNs that were sent. */
static struct cause request_at(const struct aw_qp *qp, uint32_t msn)
{
	uint32_t i = msn - (qp->tx_msn[DDP_QN_READ] - qp->orq_count);

	return i < qp->orq_count ? cause_of_request(qp, aw_orq_at(qp, i)) : (struct cause){ 0 };
}

/* The segment that was refused. */
struct refused {
	struct ddp_hdr hdr;
	enum rdmap_opcode op;
	bool has_len; /* the length is there; only in the roce persona, whose peer is anywarp */
	uint32_t len; /* of its payload */
};

/*
 * True if the refused segment may belong to the Write: its offset is inside, and a segment that is not
 * the last one ends before the Write's end.
 */
static bool is_of_write(const struct aw_swqe *wqe, const struct refused *seg)
{
	uint64_t at = seg->hdr.to - wqe->to;
	bool there = seg->op == RDMAP_WRITE && seg->hdr.stag == wqe->stag && at < wqe->len;

	if (!there || !seg->has_len)
		return there;
	return seg->hdr.last ? seg->len == wqe->len - at : seg->len < wqe->len - at;
}

static bool is_message(const struct ddp_hdr *hdr, uint32_t msn)
{
	return !hdr->tagged && hdr->qn == DDP_QN_SEND && hdr->msn == msn;
}

static bool is_cause(const struct aw_swqe *wqe, const struct refused *seg)
{
	switch ((enum aw_op)wqe->op) {
	case AW_OP_WRITE:
		return is_of_write(wqe, seg);
	case AW_OP_WRITE_IMM:
		return is_of_write(wqe, seg) || is_message(&seg->hdr, wqe->msn);
	case AW_OP_SEND:
	case AW_OP_SEND_INV:
		return is_message(&seg->hdr, wqe->msn);
	case AW_OP_SEND_IMM:
		return is_message(&seg->hdr, wqe->msn) || is_message(&seg->hdr, wqe->msn + 1);
	case AW_OP_READ:
	case AW_OP_LOCAL_INV:
	case AW_OP_BIND_MW:
	case AW_OP_CMP_SWAP:
	case AW_OP_FETCH_ADD:
	case AW_OP_ATOMIC_WRITE:
	case AW_OP_FLUSH:
		return false;
	}
	return false;
}

/*
 * The oldest WR that the segment may belong to: all WRs before that one were processed, whichever it is. A
 * Write has no number, and may be one that has completed when TCP took it; then no position is
 * known.
 */
static struct cause wr_of(const struct aw_qp *qp, const struct refused *seg)
{
	uint32_t begun = qp->sq.next + qp->tx_begun;
	struct cause cause = { 0 };

	for (uint32_t i = qp->sq.head; i != begun; i++) {
		struct aw_swqe *wqe = aw_sq_at(&qp->sq, i);

		if (is_cause(wqe, seg)) {
			cause.wqe = wqe;
			if (seg->hdr.tagged && qp->gone_pos > qp->acked_pos)
				cause.pos = 0;
			return cause;
		}
		if (wqe->end_pos > cause.pos)
			cause.pos = wqe->end_pos;
	}
	return (struct cause){ 0 };
}

/* The peer itself is at fault: the oldest WR that is not acknowledged fails. */
static struct cause oldest_unacked(const struct aw_qp *qp)
{
	struct cause cause = { .by_peer = true };

	if (qp->acks && qp->sq.head != qp->sq.next)
		cause.wqe = aw_sq_at(&qp->sq, qp->sq.head);
	return cause;
}

static struct cause cause_of_segment(const struct aw_qp *qp, const struct term_msg *msg)
{
	struct refused seg;

	if (ddp_get(msg->ddp, msg->ddp_len, &seg.hdr) ||
	    rdmap_ctrl_get(seg.hdr.ulp_ctrl, seg.hdr.tagged, seg.hdr.qn, &seg.op))
		return (struct cause){ 0 };
	if (seg.op == RDMAP_READ_REQ || seg.op == RDMAP_ATOMIC_REQ || seg.op == RDMAP_FLUSH_REQ)
		return request_at(qp, seg.hdr.msn);
	if (seg.op == RDMAP_READ_RESP || seg.op == RDMAP_ATOMIC_RESP || seg.op == RDMAP_FLUSH_RESP)
		return oldest_unacked(qp);
	seg.has_len = qp->acks && msg->has_seg_len && msg->seg_len >= msg->ddp_len;
	seg.len = seg.has_len ? msg->seg_len - msg->ddp_len : 0;
	return wr_of(qp, &seg);
}

static struct cause find_cause(const struct aw_qp *qp, const struct term_msg *msg)
{
	if (msg->has_rdmap)
		return read_of(qp, msg->rdmap);
	if (msg->has_ddp)
		return cause_of_segment(qp, msg);
	return msg->error == AW_E_LOCAL_CATASTROPHIC ? oldest_unacked(qp) : (struct cause){ 0 };
}

/* Reads the control field alone, of a Terminate whose headers are cut short. */
static enum aw_error control_only(const struct aw_rx_seg *seg, struct term_msg *msg)
{
	uint8_t ctrl[TERM_CTRL_LEN] = { 0 };

	if (seg->len < TERM_CTRL_LEN)
		return AW_E_RDMAP_OP_UNSPECIFIED;
	ctrl[0] = seg->data[0];
	ctrl[1] = seg->data[1];
	return term_get(ctrl, sizeof(ctrl), msg) ? AW_OK : AW_E_RDMAP_OP_UNSPECIFIED;
}

/* True when the program waits for the peer's word on a WR that went out. */
static bool is_peer_awaited(const struct aw_qp *qp)
{
	for (uint32_t i = qp->sq.head; i != qp->sq.next; i++) {
		const struct aw_swqe *wqe = aw_sq_at(&qp->sq, i);

		if (qp->sig_all || qp->tells_each || wqe->flags & AW_WR_SIGNALED ||
		    !aw_op_is_one_way((enum aw_op)wqe->op))
			return true;
	}
	return qp->tx_begun;
}

/*
 * A request of the peer's own has failed, and nobody here waits for the peer. On InfiniBand this end
 * would not notice: its receives stay posted, and its next post fails in time. The FIN
 * behind the Terminate already has this effect (core/ack.h), so that the Terminate is ignored. UC
 * notices no failure of its peer at all.
 */
static bool is_unnoticed(const struct aw_qp *qp, const struct term_msg *msg)
{
	if (qp->unreliable)
		return true;
	return qp->acks && msg->error == AW_E_LOCAL_CATASTROPHIC && !msg->has_ddp &&
	       !is_peer_awaited(qp);
}

enum aw_error aw_rx_terminate(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	enum aw_error err = AW_OK;
	struct term_msg msg;
	struct cause cause;

	if (seg->len > TERM_MAX)
		return AW_E_DDP_TOO_LONG;
	if (!seg->hdr.last)
		return AW_E_RDMAP_OP_UNSPECIFIED;
	if (!term_get(seg->data, seg->len, &msg))
		err = control_only(seg, &msg);
	if (err || is_unnoticed(qp, &msg))
		return err;
	cause = find_cause(qp, &msg);
	if (cause.wqe) {
		cause.wqe->done = true;
		cause.wqe->status = (uint8_t)status_of(qp, msg.error, &cause);
	}
	aw_ack_reach(qp, cause.pos);
	qp->peer_error = msg.error;
	qp->peer_mirrored = msg.mirrored;
	aw_machine_end(qp, msg.error);
	return AW_OK;
}
