// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A kernel's CQ, polled and armed. Its ring is not mapped: its entries are our own.
#include "kmod/cq/cq.h"

static const enum ib_wc_status statuses[SIW_NUM_WC_STATUS] = {
	[SIW_WC_SUCCESS] = IB_WC_SUCCESS,
	[SIW_WC_LOC_LEN_ERR] = IB_WC_LOC_LEN_ERR,
	[SIW_WC_LOC_PROT_ERR] = IB_WC_LOC_PROT_ERR,
	[SIW_WC_LOC_QP_OP_ERR] = IB_WC_LOC_QP_OP_ERR,
	[SIW_WC_WR_FLUSH_ERR] = IB_WC_WR_FLUSH_ERR,
	[SIW_WC_BAD_RESP_ERR] = IB_WC_BAD_RESP_ERR,
	[SIW_WC_LOC_ACCESS_ERR] = IB_WC_LOC_ACCESS_ERR,
	[SIW_WC_REM_ACCESS_ERR] = IB_WC_REM_ACCESS_ERR,
	[SIW_WC_REM_INV_REQ_ERR] = IB_WC_REM_INV_REQ_ERR,
	[SIW_WC_GENERAL_ERR] = IB_WC_GENERAL_ERR,
};

static const enum ib_wc_opcode opcodes[SIW_NUM_OPCODES] = {
	[SIW_OP_WRITE] = IB_WC_RDMA_WRITE,	   [SIW_OP_READ] = IB_WC_RDMA_READ,
	[SIW_OP_READ_LOCAL_INV] = IB_WC_RDMA_READ, [SIW_OP_SEND] = IB_WC_SEND,
	[SIW_OP_SEND_REMOTE_INV] = IB_WC_SEND,	   [SIW_OP_RECEIVE] = IB_WC_RECV,
	[SIW_OP_INVAL_STAG] = IB_WC_LOCAL_INV,	   [SIW_OP_REG_MR] = IB_WC_REG_MR,
};

static void cqe_translate(const struct siw_cqe *cqe, struct ib_wc *wc)
{
	*wc = (struct ib_wc){
		.wr_id = cqe->id,
		.status = statuses[cqe->status],
		.opcode = opcodes[cqe->opcode],
		.byte_len = cqe->bytes,
		.qp = cqe->base_qp,
	};
	if (cqe->flags & SIW_WQE_REM_INVAL) {
		wc->wc_flags = IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = cqe->inval_stag;
	}
}

static struct siw_cqe *cq_next(const struct awk_cq *cq)
{
	struct siw_cqe *at = (struct siw_cqe *)cq->ring.mem + (cq->get & (cq->ring.count - 1));

	lockdep_assert_held(&cq->lock);
	return at->flags & SIW_WQE_VALID ? at : NULL;
}

int awk_cq_poll(struct ib_cq *base, int count, struct ib_wc *wc)
{
	struct awk_cq *cq = awk_cq_of(base);
	struct siw_cqe *at;
	unsigned long flags;
	int polled = 0;

	if (cq->ring.map)
		return -EINVAL;
	spin_lock_irqsave(&cq->lock, flags);
	while (polled < count && (at = cq_next(cq))) {
		cqe_translate(at, wc + polled++);
		at->flags = 0;
		cq->get++;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return polled;
}

/* A program arms its CQ by the ring alone, or by this call. */
int awk_cq_req_notify(struct ib_cq *base, enum ib_cq_notify_flags how)
{
	struct awk_cq *cq = awk_cq_of(base);
	u32 armed = (how & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED ? SIW_NOTIFY_SOLICITED
								    : SIW_NOTIFY_ALL;
	unsigned long flags;
	int missed = 0;

	spin_lock_irqsave(&cq->lock, flags);
	WRITE_ONCE(cq->ctrl->flags, armed);
	if (!cq->ring.map && (how & IB_CQ_REPORT_MISSED_EVENTS))
		missed = cq_next(cq) != NULL;
	spin_unlock_irqrestore(&cq->lock, flags);
	return missed;
}
