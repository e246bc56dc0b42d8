// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ibv_modify_qp of a UD QP. SQD takes effect at once, because a datagram is sent when it is posted;
// so IBV_EVENT_SQ_DRAINED is never raised.
#include "net/ud/ud.h"
#include "ring/lock.h"
#include "verbs/limits.h"
#include "verbs/qp.h"
#include "verbs/qp_rule.h"

#include <errno.h>

/* For the states that vb_qp_rule_check lets through. */
static enum aw_ud_state meant(enum ibv_qp_state state)
{
	switch (state) {
	case IBV_QPS_RESET:
		return AW_UD_RESET;
	case IBV_QPS_INIT:
		return AW_UD_INIT;
	case IBV_QPS_RTR:
		return AW_UD_RTR;
	case IBV_QPS_RTS:
		return AW_UD_RTS;
	case IBV_QPS_SQD:
		return AW_UD_SQD;
	case IBV_QPS_SQE:
	case IBV_QPS_ERR:
	case IBV_QPS_UNKNOWN:
		return AW_UD_ERR;
	}
	return AW_UD_ERR;
}

enum ibv_qp_state vb_qp_ud_state(struct vb_qp *qp)
{
	switch (aw_ud_state(qp->uqp)) {
	case AW_UD_RESET:
		return IBV_QPS_RESET;
	case AW_UD_INIT:
		return IBV_QPS_INIT;
	case AW_UD_RTR:
		return IBV_QPS_RTR;
	case AW_UD_RTS:
		return IBV_QPS_RTS;
	case AW_UD_SQD:
		return IBV_QPS_SQD;
	case AW_UD_SQE:
		return IBV_QPS_SQE;
	case AW_UD_ERR:
		return IBV_QPS_ERR;
	}
	__builtin_unreachable();
}

int vb_qp_ud_modify(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp *ibv = &qp->ibv.qp_base;
	enum ibv_qp_state from, to;
	int err;

	aw_lock(&ibv->mutex);
	from = vb_qp_ud_state(qp);
	to = mask & IBV_QP_STATE ? attr->qp_state : from;
	if ((mask & IBV_QP_CUR_STATE && attr->cur_qp_state != from) ||
	    (mask & IBV_QP_PORT && attr->port_num != VB_PORT) ||
	    (mask & IBV_QP_PKEY_INDEX && attr->pkey_index))
		err = EINVAL;
	else
		err = vb_qp_rule_check(IBV_QPT_UD, from, to, mask);
	if (!err) {
		vb_qp_attr_keep(&qp->attr, attr, mask);
		if (mask & IBV_QP_QKEY) {
			qp->attr.qkey = attr->qkey;
			aw_ud_set_qkey(qp->uqp, attr->qkey);
		}
		if (mask & IBV_QP_STATE) {
			aw_ud_move(qp->uqp, meant(attr->qp_state));
			vb_qp_walk(qp, attr->qp_state);
		}
		ibv->state = vb_qp_ud_state(qp);
	}
	aw_unlock(&ibv->mutex);
	return err;
}
