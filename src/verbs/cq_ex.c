// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Polling an extended CQ: one CQE at a time, whose fields are then read one by one. Between start
// and end the CQ belongs to the polling thread.
#include "net/qp/cq_poll.h"
#include "ring/lock.h"
#include "verbs/cq.h"
#include "verbs/fail.h"
#include "verbs/stamp.h"
#include "verbs/wc.h"

#include <errno.h>

static struct vb_cq *cq_of(struct ibv_cq_ex *cq)
{
	return (struct vb_cq *)cq;
}

/* ENOENT when there is no CQE, which is no failure and leaves errno; EIO when the CQ is broken. */
static int current_take(struct vb_cq *cq)
{
	int got = aw_cq_poll(&cq->aw, &cq->current, 1);

	if (got < 0)
		return vb_fail(-got);
	if (!got)
		return ENOENT;
	cq->ibv.status = (enum ibv_wc_status)cq->current.cqe.status;
	cq->ibv.wr_id = cq->current.cqe.wr_id;
	return 0;
}

/* Unchecked, as start_poll: a CQ for one thread has no lock, and any other keeps it from the one call to the other. */
static void end_poll(struct ibv_cq_ex *ibv) AW_UNCHECKED
{
	struct vb_cq *cq = cq_of(ibv);

	if (!cq->single_threaded)
		aw_unlock(&cq->poll_lock);
}

static int start_poll(struct ibv_cq_ex *ibv, struct ibv_poll_cq_attr *attr) AW_UNCHECKED
{
	struct vb_cq *cq = cq_of(ibv);
	int err;

	if (attr->comp_mask)
		return vb_fail(EINVAL);
	if (!cq->single_threaded)
		aw_lock(&cq->poll_lock);
	err = current_take(cq);
	if (err)
		end_poll(ibv);
	return err;
}

static int next_poll(struct ibv_cq_ex *ibv)
{
	return current_take(cq_of(ibv));
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
	return vb_wc_opcode(&cq_of(cq)->current);
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
	return cq_of(cq)->current.cqe.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *cq)
{
	return cq_of(cq)->current.cqe.byte_len;
}

/* The immediate data, or the invalidated rkey. */
static __be32 read_imm_data(struct ibv_cq_ex *cq)
{
	return vb_wc_imm_or_rkey(&cq_of(cq)->current);
}

static uint32_t read_qp_num(struct ibv_cq_ex *cq)
{
	return cq_of(cq)->current.qpn;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *cq)
{
	return vb_wc_flags(&cq_of(cq)->current);
}

static uint32_t read_src_qp(struct ibv_cq_ex *cq)
{
	return cq_of(cq)->current.cqe.src_qpn;
}

static uint8_t read_sl(struct ibv_cq_ex *cq)
{
	return cq_of(cq)->current.cqe.sl;
}

/* InfiniBand's LIDs: none here. */
static uint32_t read_zero_32(struct ibv_cq_ex *cq)
{
	(void)cq;
	return 0;
}

static uint8_t read_zero_8(struct ibv_cq_ex *cq)
{
	(void)cq;
	return 0;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *cq)
{
	return cq_of(cq)->current.stamp_ns;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ibv)
{
	struct vb_cq *cq = cq_of(ibv);

	if (cq->aw.stamp_clock == CLOCK_REALTIME)
		return cq->current.stamp_ns;
	return vb_stamp_wallclock(cq->current.stamp_ns);
}

/* A time stamp that was not asked for has no function, as with an adapter. */
void vb_cq_ex_init(struct vb_cq *cq, uint64_t wc_flags)
{
	cq->ibv.start_poll = start_poll;
	cq->ibv.next_poll = next_poll;
	cq->ibv.end_poll = end_poll;
	cq->ibv.read_opcode = read_opcode;
	cq->ibv.read_vendor_err = read_vendor_err;
	cq->ibv.read_byte_len = read_byte_len;
	cq->ibv.read_imm_data = read_imm_data;
	cq->ibv.read_qp_num = read_qp_num;
	cq->ibv.read_wc_flags = read_wc_flags;
	cq->ibv.read_src_qp = read_src_qp;
	cq->ibv.read_slid = read_zero_32;
	cq->ibv.read_sl = read_sl;
	cq->ibv.read_dlid_path_bits = read_zero_8;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		cq->ibv.read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		cq->ibv.read_completion_wallclock_ns = read_completion_wallclock_ns;
}
