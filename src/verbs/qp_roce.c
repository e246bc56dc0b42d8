// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ibv_modify_qp in the roce persona: the program walks the QP from RESET to RTS and says there whom
// it is connected to. Nothing here waits for the peer.
#include "verbs/qp.h"
#include "verbs/qp_rule.h"

#include <errno.h>

static enum ibv_qp_state walked(const struct vb_qp *qp)
{
	return atomic_load_explicit(&qp->walked, memory_order_relaxed);
}

enum ibv_qp_state vb_qp_roce_state(struct vb_qp *qp)
{
	switch (aw_uqp_state(qp->uqp)) {
	case AW_QP_TERMINATE:
	case AW_QP_ERROR:
		return IBV_QPS_ERR;
	case AW_QP_RTS:
	case AW_QP_CLOSING:
		/* rdma_cm connected it. */
		if (walked(qp) == IBV_QPS_INIT)
			return IBV_QPS_RTS;
		break;
	case AW_QP_IDLE:
		break;
	}
	return walked(qp);
}

static int check(struct vb_qp *qp, enum ibv_qp_state from, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
	int err;

	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != from)
		return EINVAL;
	err = vb_qp_rule_check(qp->ibv.qp_base.qp_type, from, to, mask);
	return err ? err : vb_qp_attr_check(attr, mask);
}

static void move(struct vb_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
	if (to == IBV_QPS_RESET)
		aw_uqp_reset(qp->uqp);
	else if (to == IBV_QPS_ERR && from != to)
		aw_uqp_abort(qp->uqp);
	atomic_store_explicit(&qp->reset, to == IBV_QPS_RESET, memory_order_relaxed);
	atomic_store_explicit(&qp->walked, to, memory_order_relaxed);
}

int vb_qp_roce_modify(struct vb_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp *ibv = &qp->ibv.qp_base;
	enum ibv_qp_state from = vb_qp_roce_state(qp);
	int err = check(qp, from, attr, mask);

	if (err)
		return err;
	pthread_mutex_lock(&ibv->mutex);
	vb_qp_attr_keep(&qp->attr, attr, mask);
	pthread_mutex_unlock(&ibv->mutex);
	if (mask & IBV_QP_ACCESS_FLAGS)
		vb_qp_access_grant(qp, attr->qp_access_flags);
	if (mask & IBV_QP_STATE)
		move(qp, from, attr->qp_state);
	ibv->state = vb_qp_roce_state(qp);
	return 0;
}
