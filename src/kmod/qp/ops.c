// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions that the core calls, under the QP lock. No consumer is called from here: events are
// only noted.
#include "kmod/mr/mr.h"
#include "kmod/qp/qp.h"
#include "kmod/qp/sqe.h"

#include <linux/crc32c.h>

static const struct aw_mr *mr_get(void *ctx, u32 stag)
{
	return awk_mr_get(((struct awk_qp *)ctx)->dev, stag);
}

static void mr_put(void *ctx, const struct aw_mr *mr)
{
	awk_mr_put(mr);
}

/* No region here is on demand. */
static bool reach(void *ctx, const struct aw_mr *mr, u8 *at, size_t len, bool write)
{
	return true;
}

static bool place(void *ctx, const struct aw_mr *mr, u8 *dst, const u8 *src, size_t len)
{
	const struct awk_qp *qp = ctx;

	return qp->source ? qp->source->place(qp->source, mr, dst, (uintptr_t)src, len)
			  : awk_mr_place(mr, dst, src, len);
}

static bool gather(void *ctx, const struct aw_mr *mr, u8 *dst, const u8 *src, size_t len, u32 *crc)
{
	if (!awk_mr_gather(mr, dst, src, len))
		return false;
	if (crc)
		*crc = crc32c(*crc, dst, len);
	return true;
}

static bool atomic(void *ctx, const struct aw_mr *mr, u8 *at, const struct rdmap_atomic_req *req,
		   u64 *before)
{
	return awk_mr_atomic(mr, at, req, before);
}

/* Not agreed to (kmod/cm/policy.c), and no region here grants AW_ACCESS_FLUSH_PERSISTENT. */
static enum aw_written write_back(void *ctx, const struct aw_mr *mr, u8 *at, size_t len,
				  bool persistent)
{
	return persistent ? AW_UNWRITTEN : AW_WRITTEN;
}

static enum aw_error invalidate(void *ctx, u32 stag, bool by_peer)
{
	struct awk_qp *qp = ctx;

	return awk_mr_invalidate(qp->dev, qp->core.pd, stag, by_peer);
}

/* The core's local operation of this name is REG_MR here: there are no windows. */
static enum aw_wc_status bind_op(void *ctx, const struct aw_swqe *wqe)
{
	struct awk_qp *qp = ctx;

	return awk_mr_register(qp->dev, qp->core.pd, wqe->stag, wqe->access);
}

static bool recv_take(void *ctx, struct aw_rwqe *recv)
{
	struct awk_qp *qp = ctx;
	bool limit_due = false;
	bool taken;

	lockdep_assert_held(&qp->lock);
	/* A program may post as fast as its receives are flushed. */
	if (qp->core.flushed && qp->recv_budget == 0)
		return false;
	qp->recv_budget -= qp->core.flushed;
	taken = qp->srq ? awk_srq_take(qp->srq, recv, &limit_due)
			: awk_recvs_take(&qp->recvs, recv);
	qp->due |= limit_due ? AWK_DUE_SRQ_LIMIT : 0;
	return taken;
}

static const u8 statuses[] = {
	[AW_WC_SUCCESS] = SIW_WC_SUCCESS,
	[AW_WC_LOC_LEN_ERR] = SIW_WC_LOC_LEN_ERR,
	[AW_WC_LOC_QP_OP_ERR] = SIW_WC_LOC_QP_OP_ERR,
	[AW_WC_LOC_PROT_ERR] = SIW_WC_LOC_PROT_ERR,
	[AW_WC_WR_FLUSH_ERR] = SIW_WC_WR_FLUSH_ERR,
	[AW_WC_MW_BIND_ERR] = SIW_WC_LOC_QP_OP_ERR,
	[AW_WC_LOC_ACCESS_ERR] = SIW_WC_LOC_ACCESS_ERR,
	[AW_WC_REM_INV_REQ_ERR] = SIW_WC_REM_INV_REQ_ERR,
	[AW_WC_REM_ACCESS_ERR] = SIW_WC_REM_ACCESS_ERR,
	[AW_WC_REM_OP_ERR] = SIW_WC_GENERAL_ERR,
	[AW_WC_RETRY_EXC_ERR] = SIW_WC_GENERAL_ERR,
	[AW_WC_RNR_RETRY_EXC_ERR] = SIW_WC_GENERAL_ERR,
	[AW_WC_GENERAL_ERR] = SIW_WC_GENERAL_ERR,
};

static u8 opcode_of(enum aw_op op)
{
	switch (op) {
	case AW_OP_WRITE:
	case AW_OP_WRITE_IMM:
		return SIW_OP_WRITE;
	case AW_OP_SEND:
	case AW_OP_SEND_IMM:
		return SIW_OP_SEND;
	case AW_OP_SEND_INV:
		return SIW_OP_SEND_REMOTE_INV;
	case AW_OP_READ:
		return SIW_OP_READ;
	case AW_OP_LOCAL_INV:
		return SIW_OP_INVAL_STAG;
	case AW_OP_BIND_MW:
		return SIW_OP_REG_MR;
	case AW_OP_CMP_SWAP: /* a malformed WR */
	case AW_OP_FETCH_ADD:
	case AW_OP_ATOMIC_WRITE: /* neither this nor the next can be posted */
	case AW_OP_FLUSH:
		return SIW_OP_WRITE;
	}
	return SIW_OP_WRITE;
}

static void push(struct awk_qp *qp, enum aw_queue queue, const struct aw_cqe *cqe)
{
	bool of_sq = queue == AW_SQ;
	struct siw_cqe out = {
		.id = cqe->wr_id,
		.opcode = of_sq ? opcode_of(cqe->op) : SIW_OP_RECEIVE,
		.status = statuses[cqe->status],
		.bytes = cqe->byte_len,
		.flags = (cqe->flags & AW_WC_SOLICITED ? SIW_WQE_SOLICITED : 0) |
			 (cqe->flags & AW_WC_WITH_INV ? SIW_WQE_REM_INVAL : 0),
	};

	if (cqe->flags & AW_WC_WITH_INV)
		out.inval_stag = cqe->inv_or_imm;
	if (qp->user)
		out.qp_id = qp->base.qp_num;
	else
		out.base_qp = &qp->base;
	switch (awk_cq_push(of_sq ? qp->send_cq : qp->recv_cq, &out)) {
	case AWK_CQ_QUIET:
		break;
	case AWK_CQ_NOTIFY:
		qp->due |= of_sq ? AWK_DUE_SEND_CQ : AWK_DUE_RECV_CQ;
		break;
	case AWK_CQ_OVERFLOW:
		qp->due |= of_sq ? AWK_DUE_SEND_OVERFLOW : AWK_DUE_RECV_OVERFLOW;
		break;
	}
}

/* The two halves of a Read with invalidate complete as one: with the first that fails, or the second. */
static bool half_is_silent(struct awk_qp *qp, u8 mark, struct aw_cqe *cqe)
{
	if (mark == AWK_MARK_READ_HALF) {
		qp->read_inv_failed = cqe->status != AW_WC_SUCCESS;
		return !qp->read_inv_failed;
	}
	if (mark == AWK_MARK_INV_HALF) {
		cqe->op = AW_OP_READ;
		return qp->read_inv_failed;
	}
	return false;
}

static void complete_op(void *ctx, enum aw_queue queue, const struct aw_cqe *cqe)
{
	struct awk_qp *qp = ctx;
	struct aw_cqe one = *cqe;

	lockdep_assert_held(&qp->lock);
	/* The core completes the oldest WR of the send queue. */
	if (queue == AW_SQ &&
	    half_is_silent(qp, aw_sq_at(&qp->core.sq, qp->core.sq.head)->mark, &one))
		return;
	push(qp, queue, &one);
}

static u32 crc32c_op(u32 crc, const void *data, size_t len)
{
	return crc32c(crc, data, len);
}

const struct aw_ops awk_ops = {
	.mr_get = mr_get,
	.mr_put = mr_put,
	.reach = reach,
	.place = place,
	.gather = gather,
	.invalidate = invalidate,
	.bind = bind_op,
	.atomic = atomic,
	.write_back = write_back,
	.recv_take = recv_take,
	.complete = complete_op,
	.crc32c = crc32c_op,
};
