// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Unreliable Connections (UC) of InfiniBand: a message that the responder cannot take is dropped as
// if the network had lost it. The peer is told nothing, the stream goes on, and the next message is
// taken. An error of this end's own, such as a receive whose memory is gone, ends the QP as it does
// that of a reliable connection.
//
// message                              effect
// Send without a receive               dropped
// Send longer than its receive         dropped; the receive is the next message's, or, one of an
//                                      SRQ, completes with AW_WC_REM_INV_REQ_ERR
// Write that the peer may not do       dropped from the segment on that was refused: DDP has no
//                                      length of the message that could be checked before
// Immediate without a receive          dropped; the octets of its Write stay
// Immediate of a Write that was        dropped
#include "core/completion.h"
#include "core/rx_parts.h"

static bool is_send(enum rdmap_opcode op)
{
	return op == RDMAP_SEND || op == RDMAP_SEND_INV || op == RDMAP_SEND_SE ||
	       op == RDMAP_SEND_SE_INV;
}

static bool is_immediate(enum rdmap_opcode op)
{
	return op == RDMAP_IMM || op == RDMAP_IMM_SE;
}

bool aw_rx_is_rest(const struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	if (seg->op == RDMAP_WRITE)
		return qp->rx_drop.write;
	return qp->rx_drop.send && (is_send(seg->op) || is_immediate(seg->op));
}

static void drop_count(struct aw_rx_drop *drop, enum aw_error err)
{
	drop->last = err;
	drop->count++;
}

static void receive_give_back(struct aw_qp *qp)
{
	struct aw_cqe cqe = {
		.status = AW_WC_REM_INV_REQ_ERR,
		.op = AW_OP_SEND,
		.flags = AW_WC_SOLICITED,
		.vendor_err = AW_E_DDP_TOO_LONG,
	};

	if (!qp->rx_send.active)
		return;
	if (qp->srq) {
		aw_completion_receive(qp, &cqe);
		return;
	}
	qp->rx_send.active = false;
	qp->rx_send.kept = true;
	qp->rx_send.status = AW_WC_SUCCESS;
}

static enum aw_error send_drop(struct aw_qp *qp, const struct aw_rx_seg *seg, enum aw_error err)
{
	struct aw_rx_drop *drop = &qp->rx_drop;

	if (err != AW_E_DDP_NO_BUFFER && err != AW_E_DDP_TOO_LONG)
		return err;
	/* The offset was found to be right; a message that never ends is none. */
	if (seg->hdr.mo > AW_MSG_MAX - seg->len)
		return AW_E_DDP_TOO_LONG;
	if (!drop->send)
		drop_count(drop, err);
	receive_give_back(qp);
	drop->send = !seg->hdr.last;
	drop->offset = seg->hdr.last ? 0 : seg->hdr.mo + seg->len;
	if (seg->hdr.last) {
		qp->rx_msn[DDP_QN_SEND]++;
		qp->rx_imm.held = false;
	}
	return AW_OK;
}

static void write_drop(struct aw_qp *qp, const struct aw_rx_seg *seg, enum aw_error err)
{
	struct aw_rx_drop *drop = &qp->rx_drop;

	if (!drop->write) {
		aw_refusal_note(qp, seg, err);
		drop_count(drop, err);
	}
	drop->write = !seg->hdr.last;
	drop->wrote = true;
	qp->rx_imm.write_ended = true; /* the next Write is counted from its beginning */
}

void aw_rx_drop_immediate(struct aw_qp *qp)
{
	qp->rx_imm.write_len = 0;
	qp->rx_msn[DDP_QN_SEND]++;
}

enum aw_error aw_rx_drop(struct aw_qp *qp, const struct aw_rx_seg *seg, enum aw_error err)
{
	switch (seg->op) {
	case RDMAP_WRITE:
		write_drop(qp, seg, err);
		return AW_OK;
	case RDMAP_SEND:
	case RDMAP_SEND_INV:
	case RDMAP_SEND_SE:
	case RDMAP_SEND_SE_INV:
		return send_drop(qp, seg, err);
	case RDMAP_IMM:
	case RDMAP_IMM_SE:
		/* Within a Send there is none. */
		if (qp->rx_drop.send)
			return AW_E_RDMAP_OPCODE;
		if (err != AW_E_DDP_NO_BUFFER)
			return err;
		drop_count(&qp->rx_drop, err);
		aw_rx_drop_immediate(qp);
		return AW_OK;
	case RDMAP_READ_REQ:
	case RDMAP_READ_RESP:
	case RDMAP_TERMINATE:
	case RDMAP_ATOMIC_REQ:
	case RDMAP_ATOMIC_RESP:
	case RDMAP_FLUSH_REQ:
	case RDMAP_FLUSH_RESP:
		return err;
	}
	return err;
}

void aw_rx_drop_half(struct aw_qp *qp)
{
	receive_give_back(qp);
	qp->rx_drop.send = qp->rx_drop.write = qp->rx_drop.wrote = false;
	qp->rx_drop.offset = 0;
}
