// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Inbound Writes (RFC 5040 5.1): placed where the peer may write. The program is not notified
// before a Send.
#include "core/rx_parts.h"
#include "core/span.h"

/*
 * DDP finds these errors (RFC 5041 7.1), so they are reported with DDP's codes; access rights are
 * RDMAP's alone (RFC 5040 figure 9).
 */
static enum aw_error as_ddp(enum aw_error err)
{
	switch ((uint32_t)err) {
	case AW_E_RDMAP_STAG:
		return AW_E_DDP_TAGGED_STAG;
	case AW_E_RDMAP_BOUNDS:
		return AW_E_DDP_TAGGED_BOUNDS;
	case AW_E_RDMAP_NOT_ASSOCIATED:
		return AW_E_DDP_TAGGED_NOT_ASSOCIATED;
	case AW_E_RDMAP_TO_WRAP:
		return AW_E_DDP_TAGGED_TO_WRAP;
	}
	return err;
}

static enum aw_error place(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	struct aw_span span = { .len = seg->len };
	const struct aw_mr *mr;
	enum aw_error err;

	mr = qp->ops->mr_get(qp->ctx, seg->hdr.stag);
	err = aw_rx_check(qp, mr, AW_ACCESS_REMOTE_WRITE, seg->hdr.to, seg->len);
	if (!err) {
		span.p = aw_mr_at(mr, seg->hdr.to);
		err = aw_span_reach(qp, mr, AW_ACCESS_REMOTE_WRITE, &span);
	}
	if (!err && !qp->ops->place(qp->ctx, mr, span.p, seg->data, seg->len))
		err = AW_E_RDMAP_BOUNDS;
	if (mr)
		qp->ops->mr_put(qp->ctx, mr);
	return as_ddp(err);
}

/* Counts the octets of the Write, for an Immediate that may complete it. */
static void count(struct aw_rx_imm *imm, const struct aw_rx_seg *seg)
{
	if (imm->write_ended)
		imm->write_len = 0;
	imm->write_len += seg->len;
	imm->write_ended = seg->hdr.last;
}

/* True for a Write that the program was to be notified of. */
static bool announces_immediate(const struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	return qp->stream.extensions && (seg->hdr.ulp_ctrl & RDMAP_CTRL_IMM);
}

/* As on InfiniBand: the receive that the Write would have completed fails, and all later ones are flushed. */
static void refuse_receive(struct aw_qp *qp)
{
	struct aw_rx_send *send = &qp->rx_send;

	/* The peer may have written in the middle of a Send, whose receive is that one. */
	if (send->active || !qp->ops->recv_take(qp->ctx, &send->recv))
		return;
	send->active = true;
	send->status = AW_WC_LOC_ACCESS_ERR;
}

enum aw_error aw_rx_write(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	/* RFC 5041 5.2: of a segment without payload neither STag nor TO is checked. */
	enum aw_error err = seg->len > 0 ? place(qp, seg) : AW_OK;

	if (!err)
		count(&qp->rx_imm, seg);
	else if (!qp->unreliable && announces_immediate(qp, seg))
		refuse_receive(qp);
	return err;
}
