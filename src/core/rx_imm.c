// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Inbound Immediate Data (RFC 7306 6), in the one meaning that two anywarp ends give it
// (docs/extensions.md): it completes the Write before it, or belongs to the Send behind it.
#include "core/completion.h"
#include "core/rx_parts.h"

static enum aw_error check(const struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	/* Without the agreement the meaning of the eight octets is not known. */
	if (!qp->stream.extensions)
		return AW_E_RDMAP_OPCODE;
	if (qp->rx_send.active || qp->rx_imm.held)
		return AW_E_RDMAP_OPCODE;
	/* RFC 7306 6.3: exactly eight octets. */
	if (seg->len != RDMAP_IMM_LEN || !seg->hdr.last)
		return AW_E_RDMAP_OP_UNSPECIFIED;
	return AW_OK;
}

/* The Send carries the solicited event, if any. */
static enum aw_error hold(struct aw_qp *qp, const struct aw_rx_seg *seg, uint32_t data)
{
	if (seg->op == RDMAP_IMM_SE)
		return AW_E_RDMAP_OP_UNSPECIFIED;
	qp->rx_imm.held = true;
	qp->rx_imm.data = data;
	qp->rx_msn[DDP_QN_SEND]++;
	return AW_OK;
}

/* A program reads as many octets as its completion reports: no more than the peer has written. */
static bool length_is_true(const struct aw_rx_imm *imm, uint32_t length)
{
	if (length == 0)
		return true;
	return length <= AW_MSG_MAX && imm->write_ended && length == imm->write_len;
}

static enum aw_error complete(struct aw_qp *qp, const struct aw_rx_seg *seg,
			      const struct rdmap_imm *imm)
{
	struct aw_cqe cqe = {
		.status = AW_WC_SUCCESS,
		.op = AW_OP_WRITE_IMM,
		.byte_len = imm->length,
		.inv_or_imm = imm->data,
		.flags = AW_WC_WITH_IMM | (seg->op == RDMAP_IMM_SE ? AW_WC_SOLICITED : 0),
	};
	enum aw_error err;

	/* UC: the Write that it would complete was dropped. */
	if (imm->length > 0 && qp->rx_drop.wrote) {
		aw_rx_drop_immediate(qp);
		return AW_OK;
	}
	if (!length_is_true(&qp->rx_imm, imm->length))
		return AW_E_RDMAP_OP_UNSPECIFIED;
	err = aw_xrc_recv_take(qp, seg->hdr.ulp_rsvd);
	if (err)
		return err;
	qp->rx_send.active = true;
	qp->rx_imm.write_len = 0;
	qp->rx_msn[DDP_QN_SEND]++;
	aw_completion_receive(qp, &cqe);
	return AW_OK;
}

enum aw_error aw_rx_immediate(struct aw_qp *qp, const struct aw_rx_seg *seg)
{
	enum aw_error err = check(qp, seg);
	struct rdmap_imm imm;

	if (err)
		return err;
	imm = rdmap_imm_get(seg->data);
	if (imm.length == RDMAP_IMM_OF_SEND)
		return hold(qp, seg, imm.data);
	return complete(qp, seg, &imm);
}
