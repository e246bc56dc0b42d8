// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Inbound Sends (RFC 5040 5.3): each takes one receive, is placed there, and completes it when
// its last segment is in.
#include "core/completion.h"
#include "core/rx_parts.h"
#include "core/span.h"

static bool has_invalidate(enum rdmap_opcode op)
{
	return op == RDMAP_SEND_INV || op == RDMAP_SEND_SE_INV;
}

static bool has_solicited(enum rdmap_opcode op)
{
	return op == RDMAP_SEND_SE || op == RDMAP_SEND_SE_INV;
}

/* RFC 6581 9.2: an RTR is not the ULP's message and takes no receive of it. */
static bool is_rtr(const struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	return qp->rtr_awaited && seg->op == RDMAP_SEND && seg->len == 0 && seg->hdr.last;
}

/* A first segment takes a receive; the others must go on with the same message. */
static enum aw_error begin_or_continue(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	struct aw_rx_send *send = &qp->rx_send;
	enum rdmap_opcode op = seg->op;
	enum aw_error err;

	if (send->active)
		return op == send->op ? AW_OK : AW_E_RDMAP_OPCODE;
	/* A completion has room either for immediate data or for an invalidated STag. */
	if (qp->rx_imm.held && has_invalidate(op))
		return AW_E_RDMAP_OPCODE;
	/* Where XRC names the SRQ the header of a Send with Invalidate has the STag. */
	if (qp->xrc && has_invalidate(op))
		return AW_E_RDMAP_OPCODE;
	err = aw_xrc_recv_take(qp, seg->hdr.ulp_rsvd);
	if (err)
		return err;
	send->active = true;
	send->op = op;
	send->status = AW_WC_SUCCESS;
	send->placed = 0;
	return AW_OK;
}

static enum aw_error place(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	struct aw_rx_send *send = &qp->rx_send;
	const struct aw_stretch stretch = {
		.sge = send->recv.sge,
		.sge_count = send->recv.sge_count,
		.pd = qp->recv_pd,
		.access = AW_ACCESS_LOCAL_WRITE,
		.offset = send->placed,
		.len = seg->len,
	};

	if (seg->len > send->recv.len - send->placed) {
		send->status = AW_WC_LOC_LEN_ERR;
		return AW_E_DDP_TOO_LONG;
	}
	if (!aw_spans_place(qp, &stretch, seg->data)) {
		send->status = AW_WC_LOC_PROT_ERR;
		return AW_E_LOCAL_CATASTROPHIC;
	}
	send->placed += seg->len;
	return AW_OK;
}

/*
 * RFC 5040 7.2: the STag must be valid, and be of this stream; 5.3: of another stream it "cannot
 * be invalidated", which is a protection error.
 */
static enum aw_error invalidate(struct aw_qp *qp, uint32_t stag)
{
	enum aw_error err = qp->ops->invalidate(qp->ctx, stag, true);

	if (err)
		qp->rx_send.status = AW_WC_REM_INV_REQ_ERR;
	return err == AW_E_RDMAP_NOT_ASSOCIATED ? AW_E_RDMAP_PROT_CANNOT_INVALIDATE : err;
}

static void complete(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	struct aw_cqe cqe = {
		.status = AW_WC_SUCCESS,
		.op = AW_OP_SEND,
		.byte_len = qp->rx_send.placed,
		.flags = has_solicited(seg->op) ? AW_WC_SOLICITED : 0,
	};

	if (has_invalidate(seg->op)) {
		cqe.op = AW_OP_SEND_INV;
		cqe.inv_or_imm = seg->hdr.ulp_rsvd;
		cqe.flags |= AW_WC_WITH_INV;
	} else if (qp->rx_imm.held) {
		cqe.op = AW_OP_SEND_IMM;
		cqe.inv_or_imm = qp->rx_imm.data;
		cqe.flags |= AW_WC_WITH_IMM;
		qp->rx_imm.held = false;
	}
	aw_completion_receive(qp, &cqe);
}

enum aw_error aw_rx_send(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	enum aw_error err;

	if (is_rtr(qp, seg)) {
		qp->rx_msn[DDP_QN_SEND]++;
		return AW_OK;
	}
	err = begin_or_continue(qp, seg);
	if (!err)
		err = place(qp, seg);
	if (err || !seg->hdr.last)
		return err;
	if (has_invalidate(seg->op))
		err = invalidate(qp, seg->hdr.ulp_rsvd);
	if (err)
		return err;
	qp->rx_msn[DDP_QN_SEND]++;
	complete(qp, seg);
	return AW_OK;
}
