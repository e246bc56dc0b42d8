// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The number of an SRQ is one of those that QPs have (net/roce/qpn.h), so that no other process of this
// address has it: a message that a program sends to the wrong process's QP is refused, and not misdelivered.
#include "verbs/srq_xrc.h"

#include "net/base/persona.h"
#include "net/roce/qpn.h"
#include "ring/table.h"
#include "verbs/context.h"
#include "verbs/cq.h"
#include "verbs/fail.h"
#include "verbs/xrcd.h"

#include <errno.h>

int vb_srq_xrc_check(struct ibv_context *context, const struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t required = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
				  IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;

	if (!aw_persona_is_roce() || attr->comp_mask & ~required)
		return EOPNOTSUPP;
	if (attr->comp_mask != required || !attr->pd || !attr->xrcd || !attr->cq)
		return EINVAL;
	return attr->pd->context == context && attr->xrcd->context == context &&
			       attr->cq->context == context
		       ? 0
		       : EINVAL;
}

int vb_srq_xrc_join(struct vb_srq *srq, struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	uint32_t number;
	int err = aw_qpn_take(AW_TABLE_NONE, &number);

	if (err)
		return err;
	err = aw_xrc_join(&vb_xrcd_of(xrcd)->domain->aw, number, &srq->aw, &vb_cq_of(cq)->aw,
			  &srq->xrc);
	if (err) {
		aw_qpn_give(number);
		return err;
	}
	srq->xrcd = xrcd;
	srq->cq = cq;
	atomic_fetch_add_explicit(&vb_xrcd_of(xrcd)->users, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&vb_cq_of(cq)->users, 1, memory_order_relaxed);
	return 0;
}

void vb_srq_xrc_leave(struct vb_srq *srq)
{
	uint32_t number = srq->xrc->number;

	aw_xrc_leave(&vb_xrcd_of(srq->xrcd)->domain->aw, srq->xrc);
	aw_qpn_give(number);
	/* Release pairs with the acquire where the used object is destroyed. */
	atomic_fetch_sub_explicit(&vb_cq_of(srq->cq)->users, 1, memory_order_release);
	atomic_fetch_sub_explicit(&vb_xrcd_of(srq->xrcd)->users, 1, memory_order_release);
}

/* An SRQ that QPs are created with has no number. */
int vb_get_srq_num(struct ibv_srq *ibv, uint32_t *srq_num)
{
	const struct vb_srq *srq = vb_srq_of(ibv);

	if (!srq->xrc)
		return vb_fail(EOPNOTSUPP);
	*srq_num = srq->xrc->number;
	return 0;
}
