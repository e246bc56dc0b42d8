// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Filling in a send WQE in place.
#include "verbs/send.h"

#include "base/log.h"
#include "core/atomic.h"
#include "net/ud/ud.h"
#include "verbs/ah.h"
#include "verbs/pd.h"
#include "verbs/recv.h"

#include <errno.h>
#include <string.h>

_Static_assert(AW_WR_FENCE == (int)IBV_SEND_FENCE, "the core has verbs' numbers");
_Static_assert(AW_WR_SIGNALED == (int)IBV_SEND_SIGNALED, "likewise");
_Static_assert(AW_WR_SOLICITED == (int)IBV_SEND_SOLICITED, "likewise");
_Static_assert(AW_WR_INLINE == (int)IBV_SEND_INLINE, "likewise");

void vb_send_begin(struct aw_swqe *wqe, enum aw_op op, uint64_t wr_id, unsigned int flags)
{
	memset(wqe, 0, offsetof(struct aw_swqe, sge));
	wqe->wr_id = wr_id;
	wqe->op = (uint8_t)op;
	wqe->flags = flags & (AW_WR_FENCE | AW_WR_SIGNALED | AW_WR_SOLICITED);
}

int vb_send_address(const struct vb_qp *qp, struct aw_swqe *wqe, struct ibv_ah *ah,
		    uint32_t remote_qpn, uint32_t remote_qkey)
{
	if (!qp->uqp->ud || !ah || vb_pd_key(ah->pd) != vb_pd_key(qp->ibv.qp_base.pd))
		return EINVAL;
	aw_ud_fill(qp->uqp, wqe, vb_ah_of(ah)->aw, remote_qpn, remote_qkey);
	return 0;
}

/* ibv_post_send(3) */
static bool uc_has(enum aw_op op)
{
	return aw_op_is_one_way(op) || op == AW_OP_LOCAL_INV || op == AW_OP_BIND_MW;
}

static bool op_is_agreed(const struct aw_stream *stream, enum aw_op op)
{
	if (aw_op_is_placement(op))
		return stream->placement;
	return !aw_op_is_extension(op) || stream->extensions;
}

int vb_send_agreed(struct vb_qp *qp, enum aw_op op)
{
	const struct aw_qp *core = &qp->uqp->core;

	if (qp->uqp->ud)
		return op == AW_OP_SEND || op == AW_OP_SEND_IMM ? 0 : EINVAL;
	if (qp->uqp->attr.uc && !uc_has(op))
		return EINVAL;
	if (qp->uqp->attr.xrc && op == AW_OP_SEND_INV)
		return EOPNOTSUPP;
	if (op_is_agreed(&core->stream, op) || core->state == AW_QP_ERROR)
		return 0;
	if (core->state == AW_QP_IDLE)
		return 0; /* checked when the WR's turn comes */
	if (!qp->refusal_told)
		aw_log(AW_LOG_ERROR,
		       "qp 0x%x: %s refused: the peer did not agree to "
		       "them (both ends must be anywarp with extensions=on in ANYWARP_MPA%s)",
		       qp->uqp->qpn,
		       aw_op_is_placement(op) ? "atomic writes and flushes"
					      : "immediate data and atomics",
		       aw_op_is_placement(op) ? ", and of a version that has these" : "");
	qp->refusal_told = true;
	return EOPNOTSUPP;
}

static bool has_eight_octets(const struct aw_swqe *wqe)
{
	return aw_op_is_atomic(wqe->op) || wqe->op == AW_OP_ATOMIC_WRITE;
}

int vb_send_sges(const struct vb_qp *qp, struct aw_swqe *wqe, const struct ibv_sge *sge,
		 size_t count)
{
	uint64_t bytes;

	if (count > qp->init.cap.max_send_sge || wqe->flags & AW_WR_INLINE)
		return EINVAL;
	bytes = vb_sge_bytes(sge, (uint32_t)count);
	if (bytes > AW_MSG_MAX || (has_eight_octets(wqe) && bytes != AW_ATOMIC_LEN))
		return EINVAL;
	for (size_t i = 0; i < count; i++)
		wqe->sge[i] = (struct aw_sge){ sge[i].addr, sge[i].length, sge[i].lkey };
	wqe->sge_count = (uint8_t)count;
	wqe->len = (uint32_t)bytes;
	return 0;
}

int vb_send_inline(const struct vb_qp *qp, struct aw_swqe *wqe, const void *bytes, size_t len)
{
	/* Without SGEs wqe->len counts the inline bytes, which are at most max_inline_data. */
	if ((!aw_op_is_one_way(wqe->op) && wqe->op != AW_OP_ATOMIC_WRITE) || wqe->sge_count ||
	    len > qp->init.cap.max_inline_data - wqe->len)
		return EINVAL;
	if (len)
		memcpy(wqe->data + wqe->len, bytes, len);
	wqe->flags |= AW_WR_INLINE;
	wqe->len += (uint32_t)len;
	return 0;
}
