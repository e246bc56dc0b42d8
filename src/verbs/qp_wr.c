// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The ibv_wr_* calls. ibv_wr_start takes the lock of those that post to the send queue, which no
// other call wants: the thread may post receives and poll meanwhile, and the progress thread serves
// the QP. WRs are built in the free slots behind the send queue's tail, which nothing reads, and
// take effect only when ibv_wr_complete commits them all. After the first error the other calls do
// nothing, and ibv_wr_complete returns it.
#include "core/atomic.h"
#include "ring/lock.h"
#include "verbs/fail.h"
#include "verbs/mw.h"
#include "verbs/newer.h"
#include "verbs/send.h"

#include <arpa/inet.h>
#include <errno.h>

static struct vb_qp *qp_of(struct ibv_qp_ex *qp)
{
	return (struct vb_qp *)qp;
}

static void fail(struct vb_qp *qp, int err)
{
	qp->wr_err = err;
	qp->wr = NULL;
}

/* Begins a WR; NULL after an error. */
static struct aw_swqe *build(struct vb_qp *qp, enum aw_op op)
{
	int err = qp->wr_err;

	if (err)
		return NULL;
	aw_uqp_send_begin(qp->uqp);
	err = vb_send_agreed(qp, op);
	qp->wr = aw_uqp_send_slot_ahead(qp->uqp, qp->wr_count);
	aw_uqp_unlock(qp->uqp);
	if (!err && !qp->wr)
		err = ENOMEM;
	if (err) {
		fail(qp, err);
		return NULL;
	}
	vb_send_begin(qp->wr, op, qp->ibv.wr_id, qp->ibv.wr_flags);
	qp->wr_count++;
	return qp->wr;
}

static struct aw_swqe *build_rdma(struct vb_qp *qp, enum aw_op op, uint32_t rkey,
				  uint64_t remote_addr)
{
	struct aw_swqe *wqe = build(qp, op);

	if (wqe) {
		wqe->stag = rkey;
		wqe->to = remote_addr;
	}
	return wqe;
}

static void wr_start(struct ibv_qp_ex *ibv) AW_ACQUIRE(qp_of(ibv)->post_lock)
{
	struct vb_qp *qp = qp_of(ibv);

	aw_lock(&qp_of(ibv)->post_lock);
	qp->wr = NULL;
	qp->wr_count = 0;
	aw_uqp_send_begin(qp->uqp);
	qp->wr_tail = qp->uqp->core.sq.tail;
	qp->wr_err = vb_qp_may_send(qp) ? 0 : EINVAL;
	aw_uqp_unlock(qp->uqp);
}

/* False where a datagram has no address or an atomic not its eight bytes: the call that would give it was left out. */
static bool all_whole(const struct vb_qp *qp) AW_REQUIRES(qp->uqp->lock)
{
	const struct aw_sq *sq = &qp->uqp->core.sq;

	for (uint32_t i = 0; i < qp->wr_count; i++) {
		const struct aw_swqe *wqe = aw_sq_at(sq, sq->tail + i);
		bool whole = qp->uqp->ud ? wqe->to != 0
					 : !aw_op_is_atomic(wqe->op) || wqe->len == AW_ATOMIC_LEN;

		if (!whole)
			return false;
	}
	return true;
}

static int wr_complete(struct ibv_qp_ex *ibv) AW_RELEASE(qp_of(ibv)->post_lock)
{
	struct vb_qp *qp = qp_of(ibv);
	int err = qp->wr_err;

	aw_uqp_send_begin(qp->uqp);
	/* Also where the QP was reset meanwhile, which took the slots with it. */
	if (!err && (qp->uqp->core.sq.tail != qp->wr_tail || !vb_qp_may_send(qp) || !all_whole(qp)))
		err = EINVAL;
	for (; !err && qp->wr_count; qp->wr_count--) {
		vb_mw_posted(aw_sq_at(&qp->uqp->core.sq, qp->uqp->core.sq.tail));
		vb_send_commit(qp);
	}
	vb_send_end(qp);
	aw_unlock(&qp_of(ibv)->post_lock);
	return vb_fail(err);
}

static void wr_abort(struct ibv_qp_ex *ibv) AW_RELEASE(qp_of(ibv)->post_lock)
{
	aw_unlock(&qp_of(ibv)->post_lock);
}

static void wr_send(struct ibv_qp_ex *ibv)
{
	build(qp_of(ibv), AW_OP_SEND);
}

static void wr_send_inv(struct ibv_qp_ex *ibv, uint32_t invalidate_rkey)
{
	struct aw_swqe *wqe = build(qp_of(ibv), AW_OP_SEND_INV);

	if (wqe)
		wqe->inv_or_imm = invalidate_rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ibv, uint32_t invalidate_rkey)
{
	struct aw_swqe *wqe = build(qp_of(ibv), AW_OP_LOCAL_INV);

	if (wqe)
		wqe->stag = invalidate_rkey;
}

static void wr_bind_mw(struct ibv_qp_ex *ibv, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *bind_info)
{
	struct vb_qp *qp = qp_of(ibv);
	struct aw_swqe *wqe = build(qp, AW_OP_BIND_MW);
	int err = wqe ? vb_mw_fill(wqe, IBV_MW_TYPE_2, mw, rkey, bind_info) : 0;

	qp->wr = NULL; /* a bind takes no SGE */
	if (err)
		fail(qp, err);
}

static void wr_rdma_write(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr)
{
	build_rdma(qp_of(ibv), AW_OP_WRITE, rkey, remote_addr);
}

static void wr_rdma_read(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr)
{
	build_rdma(qp_of(ibv), AW_OP_READ, rkey, remote_addr);
}

static void wr_send_imm(struct ibv_qp_ex *ibv, __be32 imm_data)
{
	struct aw_swqe *wqe = build(qp_of(ibv), AW_OP_SEND_IMM);

	if (wqe)
		wqe->inv_or_imm = ntohl(imm_data);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	struct aw_swqe *wqe = build_rdma(qp_of(ibv), AW_OP_WRITE_IMM, rkey, remote_addr);

	if (wqe)
		wqe->inv_or_imm = ntohl(imm_data);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	struct aw_swqe *wqe = build_rdma(qp_of(ibv), AW_OP_CMP_SWAP, rkey, remote_addr);

	if (wqe) {
		wqe->compare_add = compare;
		wqe->swap = swap;
	}
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	struct aw_swqe *wqe = build_rdma(qp_of(ibv), AW_OP_FETCH_ADD, rkey, remote_addr);

	if (wqe)
		wqe->compare_add = add;
}

/* The eight bytes are here: no setter follows, and one that does has no effect. */
static void wr_atomic_write(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr,
			    const void *atomic_wr)
{
	struct vb_qp *qp = qp_of(ibv);
	struct aw_swqe *wqe = build_rdma(qp, AW_OP_ATOMIC_WRITE, rkey, remote_addr);
	int err = wqe ? vb_send_inline(qp, wqe, atomic_wr, AW_ATOMIC_LEN) : 0;

	qp->wr = NULL;
	if (err)
		fail(qp, err);
}

static void wr_flush(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr, size_t len,
		     uint8_t type, uint8_t level)
{
	struct vb_qp *qp = qp_of(ibv);
	bool known = type && !(type & ~(VB_FLUSH_GLOBAL | VB_FLUSH_PERSISTENT)) &&
		     level <= VB_FLUSH_MR;
	struct aw_swqe *wqe = build_rdma(qp, AW_OP_FLUSH, rkey, remote_addr);

	qp->wr = NULL;
	if (!wqe)
		return;
	if (!known) {
		fail(qp, EINVAL);
		return;
	}
	wqe->access = type;
	wqe->swap = level;
	wqe->compare_add = len;
}

static void wr_set_ud_addr(struct ibv_qp_ex *ibv, struct ibv_ah *ah, uint32_t remote_qpn,
			   uint32_t remote_qkey)
{
	struct vb_qp *qp = qp_of(ibv);
	int err = 0;

	aw_uqp_send_begin(qp->uqp);
	if (qp->wr)
		err = vb_send_address(qp, qp->wr, ah, remote_qpn, remote_qkey);
	aw_uqp_unlock(qp->uqp);
	if (err)
		fail(qp, err);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ibv, uint32_t remote_srqn)
{
	struct vb_qp *qp = qp_of(ibv);

	if (qp->wr)
		vb_send_srqn(qp, qp->wr, remote_srqn);
}

static void wr_set_sge_list(struct ibv_qp_ex *ibv, size_t num_sge, const struct ibv_sge *sg_list)
{
	struct vb_qp *qp = qp_of(ibv);
	int err = qp->wr ? vb_send_sges(qp, qp->wr, sg_list, num_sge) : 0;

	if (err)
		fail(qp, err);
}

static void wr_set_sge(struct ibv_qp_ex *ibv, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { addr, length, lkey };

	wr_set_sge_list(ibv, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ibv, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct vb_qp *qp = qp_of(ibv);
	int err = 0;

	for (size_t i = 0; qp->wr && !err && i < num_buf; i++)
		err = vb_send_inline(qp, qp->wr, buf_list[i].addr, buf_list[i].length);
	if (err)
		fail(qp, err);
}

static void wr_set_inline_data(struct ibv_qp_ex *ibv, void *addr, size_t length)
{
	struct ibv_data_buf buf = { addr, length };

	wr_set_inline_data_list(ibv, 1, &buf);
}

/* Builders of operations that create_qp_ex refuses stay NULL. */
void vb_qp_wr_init(struct vb_qp *qp)
{
	qp->ibv.wr_start = wr_start;
	qp->ibv.wr_complete = wr_complete;
	qp->ibv.wr_abort = wr_abort;
	qp->ibv.wr_send = wr_send;
	qp->ibv.wr_send_inv = wr_send_inv;
	qp->ibv.wr_send_imm = wr_send_imm;
	qp->ibv.wr_local_inv = wr_local_inv;
	qp->ibv.wr_bind_mw = wr_bind_mw;
	qp->ibv.wr_rdma_write = wr_rdma_write;
	qp->ibv.wr_rdma_write_imm = wr_rdma_write_imm;
	qp->ibv.wr_rdma_read = wr_rdma_read;
	qp->ibv.wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	qp->ibv.wr_atomic_fetch_add = wr_atomic_fetch_add;
	qp->ibv.wr_atomic_write = wr_atomic_write;
	qp->newer.wr_flush = wr_flush;
	qp->ibv.wr_set_ud_addr = wr_set_ud_addr;
	qp->ibv.wr_set_xrc_srqn = wr_set_xrc_srqn;
	qp->ibv.wr_set_sge = wr_set_sge;
	qp->ibv.wr_set_sge_list = wr_set_sge_list;
	qp->ibv.wr_set_inline_data = wr_set_inline_data;
	qp->ibv.wr_set_inline_data_list = wr_set_inline_data_list;
}
