// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The peer's Terminate (RFC 5040 4.8, 5.4): ends the stream, and where it names the message that
// was wrong and that message's WR is still there, decides that WR's status. Never answered.
#include "core/machine.h"
#include "core/reads.h"
#include "core/rx_parts.h"

/* Remote protection errors, of RDMAP and of DDP's tagged buffers. */
static bool is_protection(enum aw_error err)
{
	return aw_error_type(err) == 1 && aw_error_layer(err) <= 1;
}

static enum aw_wc_status status_of(enum aw_error err, const struct aw_swqe *wqe)
{
	if (is_protection(err))
		return AW_WC_REM_ACCESS_ERR;
	/* RFC 7306 8.2: its address is not aligned. */
	if (err == AW_E_RDMAP_STREAM_CATASTROPHIC && aw_op_is_atomic(wqe->op))
		return AW_WC_REM_INV_REQ_ERR;
	if (err == AW_E_DDP_TOO_LONG || err == AW_E_RDMAP_CANNOT_INVALIDATE)
		return AW_WC_REM_INV_REQ_ERR;
	return AW_WC_REM_OP_ERR;
}

/* The Read that the Terminate's Read Request header names: by its sink STag, else the oldest. */
static struct aw_swqe *read_of(const struct aw_qp *qp, const uint8_t *rdmap)
{
	uint32_t stag = rdmap_read_req_get(rdmap).sink_stag;
	const struct aw_orq_entry *entry = NULL;

	for (uint32_t i = 0; i < qp->orq_count && !entry; i++) {
		if (aw_orq_at(qp, i)->sink_stag == stag)
			entry = aw_orq_at(qp, i);
	}
	if (!entry && qp->orq_count > 0)
		entry = aw_orq_at(qp, 0);
	return entry && !entry->rtr && !entry->atomic ? aw_sq_at(&qp->sq, entry->sq_index) : NULL;
}

/* The WR whose request has this MSN: those outstanding have the last MSNs that were sent. */
static struct aw_swqe *request_at(const struct aw_qp *qp, uint32_t msn)
{
	uint32_t i = msn - (qp->tx_msn[DDP_QN_READ] - qp->orq_count);

	if (i >= qp->orq_count || aw_orq_at(qp, i)->rtr)
		return NULL;
	return aw_sq_at(&qp->sq, aw_orq_at(qp, i)->sq_index);
}

static bool is_of_write(const struct aw_swqe *wqe, const struct ddp_hdr *hdr, enum rdmap_opcode op)
{
	return op == RDMAP_WRITE && hdr->tagged && hdr->stag == wqe->stag &&
	       hdr->to - wqe->to < wqe->len;
}

static bool is_message(const struct ddp_hdr *hdr, uint32_t msn)
{
	return !hdr->tagged && hdr->qn == DDP_QN_SEND && hdr->msn == msn;
}

static bool is_cause(const struct aw_swqe *wqe, const struct ddp_hdr *hdr, enum rdmap_opcode op)
{
	switch ((enum aw_op)wqe->op) {
	case AW_OP_WRITE:
		return is_of_write(wqe, hdr, op);
	case AW_OP_WRITE_IMM:
		return is_of_write(wqe, hdr, op) || is_message(hdr, wqe->msn);
	case AW_OP_SEND:
	case AW_OP_SEND_INV:
		return is_message(hdr, wqe->msn);
	case AW_OP_SEND_IMM:
		return is_message(hdr, wqe->msn) || is_message(hdr, wqe->msn + 1);
	case AW_OP_READ:
	case AW_OP_LOCAL_INV:
	case AW_OP_BIND_MW:
	case AW_OP_CMP_SWAP:
	case AW_OP_FETCH_ADD:
		return false;
	}
	return false;
}

/* The WR of the segment whose DDP header came back; NULL when it completed before, or is unclear. */
static struct aw_swqe *wr_of(const struct aw_qp *qp, const struct term_msg *msg)
{
	uint32_t begun = qp->sq.next + qp->tx_begun;
	enum rdmap_opcode op;
	struct ddp_hdr hdr;

	if (ddp_get(msg->ddp, msg->ddp_len, &hdr) ||
	    rdmap_ctrl_get(hdr.ulp_ctrl, hdr.tagged, hdr.qn, &op))
		return NULL;
	if (op == RDMAP_READ_REQ || op == RDMAP_ATOMIC_REQ)
		return request_at(qp, hdr.msn);
	for (uint32_t i = qp->sq.head; i != begun; i++) {
		struct aw_swqe *wqe = aw_sq_at(&qp->sq, i);

		if (is_cause(wqe, &hdr, op))
			return wqe;
	}
	return NULL;
}

/* An error of the peer's own, at its receive's memory say. What is not acknowledged, from the oldest, failed. */
static struct aw_swqe *oldest_unacked(const struct aw_qp *qp, const struct term_msg *msg)
{
	if (!qp->acks || msg->error != AW_E_LOCAL_CATASTROPHIC || qp->sq.head == qp->sq.next)
		return NULL;
	return aw_sq_at(&qp->sq, qp->sq.head);
}

static struct aw_swqe *cause(const struct aw_qp *qp, const struct term_msg *msg)
{
	if (msg->has_rdmap)
		return read_of(qp, msg->rdmap);
	return msg->has_ddp ? wr_of(qp, msg) : oldest_unacked(qp, msg);
}

/* What is there of a Terminate whose headers are cut short: its control field. */
static enum aw_error control_only(const struct aw_rx_seg *seg, struct term_msg *msg)
{
	uint8_t ctrl[TERM_CTRL_LEN] = { 0 };

	if (seg->len < TERM_CTRL_LEN)
		return AW_E_RDMAP_OP_UNSPECIFIED;
	ctrl[0] = seg->data[0];
	ctrl[1] = seg->data[1];
	return term_get(ctrl, sizeof(ctrl), msg) ? AW_OK : AW_E_RDMAP_OP_UNSPECIFIED;
}

enum aw_error aw_rx_terminate(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	enum aw_error err = AW_OK;
	struct term_msg msg;
	struct aw_swqe *wqe;

	if (seg->len > TERM_MAX)
		return AW_E_DDP_TOO_LONG;
	if (!seg->hdr.last)
		return AW_E_RDMAP_OP_UNSPECIFIED;
	if (!term_get(seg->data, seg->len, &msg))
		err = control_only(seg, &msg);
	if (err)
		return err;
	wqe = cause(qp, &msg);
	if (wqe) {
		wqe->done = true;
		wqe->status = (uint8_t)status_of(msg.error, wqe);
	}
	qp->peer_error = msg.error;
	qp->peer_mirrored = msg.mirrored;
	aw_machine_end(qp, msg.error);
	return AW_OK;
}
