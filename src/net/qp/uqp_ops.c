// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions that the core calls: the region table, guarded copies, the queues and CQs of this
// process.
#include "base/log.h"
#include "crc/crc.h"
#include "net/base/probe.h"
#include "net/mem/guard.h"
#include "net/mem/mapping.h"
#include "net/mem/writeback.h"
#include "net/mr/mrtab.h"
#include "net/mr/mw.h"
#include "net/qp/refusal.h"
#include "net/qp/stash_memory.h"
#include "net/qp/uqp_io.h"
#include "net/qp/uqp_sock.h"
#include "ring/lock.h"

#include <stdatomic.h>
#include <string.h>

#define NONTEMPORAL_MIN 1024 /* of a piece, in bytes: from there on the peer has it sooner */

/*
 * Every message that the peer's program sends calls a function that calls this one, so that
 * net/roce/rc.c knows whether there was one.
 */
static void touch(void *ctx)
{
	struct aw_uqp *qp = ctx;

	aw_latch_held(&qp->lock);
	qp->touched = true;
}

static const struct aw_mr *mr_get(void *ctx, uint32_t stag)
{
	touch(ctx);
	return aw_mr_get(stag);
}

static void mr_put(void *ctx, const struct aw_mr *mr)
{
	(void)ctx;
	aw_mr_put(mr);
}

static bool reach(void *ctx, const struct aw_mr *mr, uint8_t *at, size_t len, bool write)
{
	(void)mr;
	(void)ctx;
	return aw_mapping_reach(at, len, write);
}

static bool place(void *ctx, const struct aw_mr *mr, uint8_t *dst, const uint8_t *src, size_t len)
{
	(void)mr;
	(void)ctx;
	return aw_guard_place(dst, src, len);
}

static bool gather(void *ctx, const struct aw_mr *mr, uint8_t *dst, const uint8_t *src, size_t len,
		   uint32_t *crc)
{
	struct aw_uqp *qp = ctx;
	/* Into memory that the peer reads. */
	bool nontemporal = qp->core.copies && len >= NONTEMPORAL_MIN;

	(void)mr;
	aw_latch_held(&qp->lock);
	if (crc)
		return aw_guard_gather_folding(dst, src, len, crc);
	return nontemporal ? aw_guard_gather_nontemporal(dst, src, len)
			   : aw_guard_gather(dst, src, len);
}

static enum aw_error invalidate(void *ctx, uint32_t stag, bool by_peer)
{
	struct aw_uqp *qp = ctx;

	(void)by_peer; /* there are no fast regions */
	return aw_mw_invalidate(&qp->of_mw, stag);
}

static enum aw_wc_status bind(void *ctx, const struct aw_swqe *wqe)
{
	struct aw_uqp *qp = ctx;

	return aw_mw_bind(&qp->of_mw, wqe);
}

static bool atomic(void *ctx, const struct aw_mr *mr, uint8_t *at,
		   const struct rdmap_atomic_req *req, uint64_t *before)
{
	(void)mr;
	(void)ctx;
	return aw_guard_atomic(at, req, before);
}

static void on_written(uint32_t handle, uint64_t number, int err)
{
	struct aw_uqp *qp = aw_uqp_at(handle);

	if (!qp)
		return;
	aw_lock(&qp->lock);
	/* Any other number is of a stream that is over, or of a QP that is gone. */
	if (qp->written_back == number) {
		if (err)
			aw_log(AW_LOG_ERROR,
			       "qp 0x%x cannot keep the peer's persistent flush: msync %s", qp->qpn,
			       strerror(err));
		qp->written_back = 0;
		aw_qp_written_back(&qp->core, !err);
		aw_uqp_push(qp);
	}
	aw_uqp_unlock(qp);
	aw_uqp_put(qp);
}

/* The processes of a host see what is placed. For the file a thread writes. */
static enum aw_written write_back(void *ctx, const struct aw_mr *mr, uint8_t *at, size_t len,
				  bool persistent)
{
	static _Atomic uint64_t numbers;
	struct aw_uqp *qp = ctx;
	struct aw_writeback what = {
		.at = at, .len = len, .told = on_written, .handle = qp->handle
	};
	int err;

	(void)mr;
	if (!persistent)
		return AW_WRITTEN;
	aw_latch_held(&qp->lock);
	/* Relaxed: only the number matters. */
	what.number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;
	err = aw_writeback_start(&what);
	if (err) {
		aw_log(AW_LOG_ERROR, "qp 0x%x cannot begin the peer's persistent flush: %s",
		       qp->qpn, strerror(err));
		return AW_UNWRITTEN;
	}
	qp->written_back = what.number;
	return AW_WRITING;
}

static bool recv_take(void *ctx, struct aw_rwqe *recv)
{
	struct aw_uqp *qp = ctx;

	touch(qp);
	return qp->attr.srq ? aw_srq_take(qp->attr.srq, recv) : aw_rq_take(&qp->rq, recv);
}

static enum aw_error xrc_take(void *ctx, uint32_t srqn, struct aw_rwqe *recv, const void **pd)
{
	struct aw_uqp *qp = ctx;
	enum aw_error err;

	touch(qp);
	aw_latch_held(&qp->lock);
	err = aw_xrc_take(qp->attr.xrcd, srqn, recv, &qp->xrc_srq);
	if (!err)
		*pd = qp->xrc_srq->pd;
	else if (err == AW_E_DDP_QN)
		aw_srq_refusal_log(qp, srqn);
	return err;
}

static bool xrc_has_pd(void *ctx, const void *pd)
{
	struct aw_uqp *qp = ctx;

	return aw_xrc_has_pd(qp->attr.xrcd, pd);
}

static void complete_xrc(struct aw_uqp *qp, const struct aw_cqe *cqe) AW_REQUIRES(qp->lock)
{
	struct aw_xrc_done *done = qp->attr.xrc_done;
	struct aw_cq_entry entry = { .cqe = *cqe, .qpn = qp->qpn, .queue = AW_RQ };

	if (done->count == AW_XRC_DONE_MAX)
		aw_xrc_flush(done, AW_XRC_DONE_MAX);
	entry.cqe.src_qpn = qp->peer_qpn;
	done->at[done->count].srq = qp->xrc_srq;
	done->at[done->count++].entry = entry;
	qp->xrc_srq = NULL;
}

static void complete(void *ctx, enum aw_queue queue, const struct aw_cqe *cqe)
{
	struct aw_uqp *qp = ctx;
	struct aw_cq *cq = queue == AW_SQ ? qp->attr.send_cq : qp->attr.recv_cq;

	aw_latch_held(&qp->lock);
	aw_probe_complete(qp->qpn, queue, cqe);
	if (queue != AW_SQ)
		aw_counter_add(qp->counters.of[AW_COUNTED_RECV], cqe->status, cqe->byte_len);
	if (queue == AW_RQ && qp->xrc_srq)
		complete_xrc(qp, cqe);
	else
		aw_cq_push(cq, cqe, &(struct aw_cq_from){ &qp->of_cq, qp->qpn, queue });
}

static void *stash_get(void *ctx, size_t len)
{
	(void)ctx;
	return aw_stash_memory_get(len);
}

static void stash_put(void *ctx, void *memory, size_t len)
{
	(void)ctx;
	aw_stash_memory_put(memory, len);
}

static void wr_completed(void *ctx, const struct aw_swqe *wqe, enum aw_wc_status status)
{
	struct aw_uqp *qp = ctx;

	aw_latch_held(&qp->lock);
	aw_counter_add(aw_counters_sent(&qp->counters, (enum aw_op)wqe->op), status, wqe->len);
}

const struct aw_ops aw_uqp_ops = {
	.mr_get = mr_get,
	.mr_put = mr_put,
	.reach = reach,
	.place = place,
	.gather = gather,
	.invalidate = invalidate,
	.bind = bind,
	.atomic = atomic,
	.write_back = write_back,
	.recv_take = recv_take,
	.xrc_take = xrc_take,
	.xrc_has_pd = xrc_has_pd,
	.complete = complete,
	.stash_get = stash_get,
	.stash_put = stash_put,
	.wr_completed = wr_completed,
	.crc32c = aw_crc32c,
};
