// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ibv_post_send and ibv_post_recv. The WRs before the first bad one are posted; a bad one leaves no
// trace. An error that can only be found when the WR executes (keys, bounds, rights) ends in a
// completion instead.
#include "verbs/context.h"
#include "verbs/fail.h"
#include "verbs/mw.h"
#include "verbs/newer.h"
#include "verbs/recv.h"
#include "verbs/send.h"

#include <arpa/inet.h>
#include <errno.h>

#define SEND_FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE)

static int send_post(struct vb_qp *qp, const struct ibv_send_wr *wr) AW_REQUIRES(qp->uqp->lock);

/*
 * EINVAL before the QP is connected, ENOMEM when the send queue is full, EOPNOTSUPP for immediate
 * data, atomics and atomic writes towards a peer that did not agree to them.
 */
int vb_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct vb_qp *qp = vb_qp_of(ibv);
	int err = 0;

	vb_post_begin(qp);
	for (; wr; wr = wr->next) {
		err = send_post(qp, wr);
		if (err)
			break;
	}
	vb_post_end(qp);
	if (err)
		*bad_wr = wr;
	return vb_fail(err);
}

/* EINVAL in RESET and for a QP with an SRQ, ENOMEM when the receive queue is full. */
int vb_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct vb_qp *qp = vb_qp_of(ibv);

	for (; wr; wr = wr->next) {
		/* walked stays RESET when the QP goes on to another state without INIT. */
		bool in_reset = vb_qp_walked(qp) == IBV_QPS_RESET &&
				vb_qp_state(qp) == IBV_QPS_RESET;
		int err = EINVAL;

		if (!in_reset && vb_recv_wr_valid(wr, qp->init.cap.max_recv_sge))
			err = aw_uqp_recv(qp->uqp, wr->wr_id, (const struct aw_sge *)wr->sg_list,
					  (uint32_t)wr->num_sge);
		if (err) {
			*bad_wr = wr;
			return vb_fail(err);
		}
	}
	return 0;
}

/*
 * 0, or EOPNOTSUPP for an opcode that iWARP or this device lacks, EINVAL for an unknown one. opcode
 * is an int, since the values that the enum has depend on the headers of the build.
 */
static int send_op(int opcode, enum aw_op *op)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
		*op = AW_OP_WRITE;
		return 0;
	case IBV_WR_SEND:
		*op = AW_OP_SEND;
		return 0;
	case IBV_WR_SEND_WITH_INV:
		*op = AW_OP_SEND_INV;
		return 0;
	case IBV_WR_RDMA_READ:
		*op = AW_OP_READ;
		return 0;
	case IBV_WR_LOCAL_INV:
		*op = AW_OP_LOCAL_INV;
		return 0;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		*op = AW_OP_WRITE_IMM;
		return 0;
	case IBV_WR_SEND_WITH_IMM:
		*op = AW_OP_SEND_IMM;
		return 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		*op = AW_OP_CMP_SWAP;
		return 0;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		*op = AW_OP_FETCH_ADD;
		return 0;
	case IBV_WR_ATOMIC_WRITE:
		*op = AW_OP_ATOMIC_WRITE;
		return 0;
	case IBV_WR_BIND_MW:
		*op = AW_OP_BIND_MW;
		return 0;
	case IBV_WR_TSO:
	case IBV_WR_DRIVER1:
	case VB_WR_FLUSH: /* struct ibv_send_wr has no place for its kind: ibv_wr_flush posts it */
		return EOPNOTSUPP;
	}
	return EINVAL;
}

static int send_data(const struct vb_qp *qp, struct aw_swqe *wqe, const struct ibv_send_wr *wr)
{
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->init.cap.max_send_sge)
		return EINVAL;
	if (!(wr->send_flags & IBV_SEND_INLINE))
		return vb_send_sges(qp, wqe, wr->sg_list, (size_t)wr->num_sge);
	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];
		int err = vb_send_inline(qp, wqe, (const void *)(uintptr_t)sge->addr, sge->length);

		if (err)
			return err;
	}
	return wr->num_sge ? 0 : vb_send_inline(qp, wqe, NULL, 0);
}

/* Fills in the fields that depend on the kind of operation. */
static void send_operation(struct aw_swqe *wqe, const struct ibv_send_wr *wr)
{
	switch ((enum aw_op)wqe->op) {
	case AW_OP_SEND:
	case AW_OP_BIND_MW:
	case AW_OP_FLUSH:
		break;
	case AW_OP_SEND_INV:
		wqe->inv_or_imm = wr->invalidate_rkey;
		break;
	case AW_OP_SEND_IMM:
		wqe->inv_or_imm = ntohl(wr->imm_data);
		break;
	case AW_OP_LOCAL_INV:
		wqe->stag = wr->invalidate_rkey;
		break;
	case AW_OP_WRITE_IMM:
		wqe->inv_or_imm = ntohl(wr->imm_data);
		__attribute__((fallthrough));
	case AW_OP_WRITE:
	case AW_OP_READ:
	case AW_OP_ATOMIC_WRITE:
		wqe->to = wr->wr.rdma.remote_addr;
		wqe->stag = wr->wr.rdma.rkey;
		break;
	case AW_OP_CMP_SWAP:
	case AW_OP_FETCH_ADD:
		wqe->to = wr->wr.atomic.remote_addr;
		wqe->stag = wr->wr.atomic.rkey;
		wqe->compare_add = wr->wr.atomic.compare_add;
		wqe->swap = wr->wr.atomic.swap;
		break;
	}
}

static int send_post(struct vb_qp *qp, const struct ibv_send_wr *wr)
{
	struct aw_swqe *wqe;
	enum aw_op op;
	int err;

	if (!vb_qp_may_send(qp))
		return EINVAL;
	wqe = aw_uqp_send_slot(qp->uqp);
	if (!wqe)
		return ENOMEM;
	err = send_op((int)wr->opcode, &op);
	if (!err)
		err = vb_send_agreed(qp, op);
	if (err)
		return err;
	if (wr->send_flags & ~(unsigned int)SEND_FLAGS)
		return EINVAL;

	vb_send_begin(wqe, op, wr->wr_id, wr->send_flags);
	if (op == AW_OP_BIND_MW) {
		err = vb_mw_fill(wqe, IBV_MW_TYPE_2, wr->bind_mw.mw, wr->bind_mw.rkey,
				 &wr->bind_mw.bind_info);
	} else {
		send_operation(wqe, wr);
		vb_send_srqn(qp, wqe, wr->qp_type.xrc.remote_srqn);
		if (qp->uqp->ud)
			err = vb_send_address(qp, wqe, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
					      wr->wr.ud.remote_qkey);
		if (!err && op != AW_OP_LOCAL_INV)
			err = send_data(qp, wqe, wr);
	}
	if (err)
		return err;
	vb_mw_posted(wqe);
	vb_send_commit(qp);
	return 0;
}
