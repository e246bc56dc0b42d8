// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP's state as verbs show it. Only the connection manager begins a stream: the states before RTS
// are no more than noted.
#include "kmod/qp/qp.h"
#include "kmod/stream/stream.h"
#include "kmod/verbs/verbs.h"

static enum ib_qp_state state_of(const struct awk_qp *qp)
{
	switch (qp->core.state) {
	case AW_QP_IDLE:
		return qp->idle_state;
	case AW_QP_RTS:
		return IB_QPS_RTS;
	case AW_QP_CLOSING:
		return IB_QPS_SQD;
	case AW_QP_TERMINATE:
	case AW_QP_ERROR:
		return IB_QPS_ERR;
	}
	return IB_QPS_ERR;
}

static int modify_locked(struct awk_qp *qp, enum ib_qp_state to)
{
	lockdep_assert_held(&qp->lock);
	switch (to) {
	case IB_QPS_INIT:
	case IB_QPS_RTR:
		if (qp->core.state != AW_QP_IDLE)
			return -EINVAL;
		qp->idle_state = to;
		return 0;
	case IB_QPS_RTS:
		return qp->core.state == AW_QP_RTS ? 0 : -EINVAL;
	case IB_QPS_SQD: /* RFC 5040's CLOSING */
		if (qp->core.state == AW_QP_IDLE)
			return -EINVAL;
		aw_qp_close(&qp->core);
		return 0;
	case IB_QPS_SQE:
	case IB_QPS_RESET:
	case IB_QPS_ERR:
		aw_qp_abort(&qp->core, AW_OK);
		return 0;
	default:
		return -EINVAL;
	}
}

/*
 * rdma_cm names no right when it makes a program's QP, and on iWARP none is named later: a QP
 * without named rights leaves the peer those of the regions.
 */
static void grant(struct awk_qp *qp, int access)
{
	u32 remote = (access & IB_ACCESS_REMOTE_WRITE ? AW_ACCESS_REMOTE_WRITE : 0) |
		     (access & IB_ACCESS_REMOTE_READ ? AW_ACCESS_REMOTE_READ : 0) |
		     (access & IB_ACCESS_REMOTE_ATOMIC ? AW_ACCESS_REMOTE_ATOMIC : 0);

	lockdep_assert_held(&qp->lock);
	qp->access = access;
	qp->core.remote_access = remote ? remote : AW_ACCESS_REMOTE;
}

static int modify_state(struct awk_qp *qp, enum ib_qp_state to)
{
	int err;

	awk_qp_lock(qp);
	err = modify_locked(qp, to);
	awk_qp_unlock(qp);
	if (err)
		return err;
	awk_stream_push(qp);
	if (to == IB_QPS_RESET) {
		awk_stream_end_wait(qp);
		awk_stream_reset(qp);
	}
	return 0;
}

int awk_qp_modify(struct ib_qp *base, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct awk_qp *qp = awk_qp_of(base);

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	if (mask & IB_QP_ACCESS_FLAGS) {
		awk_qp_lock(qp);
		grant(qp, attr->qp_access_flags);
		awk_qp_unlock(qp);
	}
	return mask & IB_QP_STATE ? modify_state(qp, attr->qp_state) : 0;
}

int awk_qp_query(struct ib_qp *base, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init)
{
	struct awk_qp *qp = awk_qp_of(base);

	/* The verbs core has not cleared the memory, and shows a program all of it. */
	*attr = (struct ib_qp_attr){
		.cap = qp->cap,
		.path_mtu = ib_mtu_int_to_enum(qp->dev->netdev->mtu),
	};
	awk_qp_lock(qp);
	attr->qp_state = attr->cur_qp_state = state_of(qp);
	attr->qp_access_flags = qp->access;
	attr->max_rd_atomic = qp->core.stream.ord;
	attr->max_dest_rd_atomic = qp->core.stream.ird;
	awk_qp_unlock(qp);
	*init = (struct ib_qp_init_attr){
		.qp_type = base->qp_type,
		.send_cq = base->send_cq,
		.recv_cq = base->recv_cq,
		.srq = base->srq,
		.cap = qp->cap,
		.sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR,
	};
	return 0;
}
