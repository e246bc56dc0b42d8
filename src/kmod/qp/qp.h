// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP in the kernel without its stream: the core's machine and its lock, and the rings that WRs come in by and
// completions go out by. stream/ moves the bytes, verbs/ makes and changes QPs; nothing here calls either.
//
// Locks, outermost first: a socket's lock; qp->lock; then one at a time of sq_lock, a struct
// awk_recvs' lock, a CQ's lock. Nothing sleeps or calls a consumer under qp->lock: handlers and
// events become due there, and awk_qp_unlock calls them.
#ifndef KMOD_QP_QP_H
#define KMOD_QP_QP_H

#include "core/qp.h"
#include "kmod/base/device.h"
#include "kmod/base/work.h"
#include "kmod/cq/cq.h"
#include "kmod/cq/recvs.h"
#include "kmod/cq/srq.h"

#include <linux/completion.h>
#include <linux/kref.h>

struct awk_stream;

/* Where an FPDU lies that the core takes by aw_rx_scattered: its src is the offset at. */
struct awk_source {
	bool (*place)(const struct awk_source *source, const struct aw_mr *mr, u8 *dst, size_t at,
		      size_t len);
};

struct awk_qp {
	struct ib_qp base;
	/* fixed after create */
	struct awk_device *dev;
	struct awk_cq *send_cq;
	struct awk_cq *recv_cq;
	struct awk_srq *srq; /* or NULL */
	bool user;
	bool sig_all;
	struct ib_qp_cap cap;
	void *sq_mem;
	void *reads; /* IRQ and ORQ: AWK_RD_MAX + 1 of each */
	struct awk_ring sq; /* struct siw_sqe; a program's, or written under sq_lock */
	struct awk_stream *stream; /* stream/stream.h tells what guards it */
	struct work_struct work; /* the worker, stream/stream.c */

	struct kref refs;
	struct completion unused; /* refs came to 0 */

	spinlock_t sq_lock; /* irqsave: posting from any context */
	u32 sq_put;

	struct awk_recvs recvs;

	spinlock_t lock; /* bh: awk_qp_lock, awk_qp_unlock; guards what follows */
	struct aw_qp core;
	u32 sq_get;
	const struct awk_source *source; /* within aw_rx_scattered, else NULL */
	u32 recv_budget; /* receives that one hold of the lock may still flush */
	bool read_inv_failed; /* the Read of a READ_WITH_INV failed, and has completed */
	enum ib_qp_state idle_state; /* in IDLE: RESET, INIT or RTR, as set by modify_qp */
	u32 access; /* enum ib_access_flags of modify_qp */
	u32 due; /* enum awk_qp_due */
	u32 delivered; /* likewise: those that come once, and have come */
};

enum awk_qp_due {
	AWK_DUE_SEND_CQ = 1,
	AWK_DUE_RECV_CQ = 2,
	AWK_DUE_SEND_OVERFLOW = 4,
	AWK_DUE_RECV_OVERFLOW = 8,
	AWK_DUE_FATAL = 16,
	AWK_DUE_ACCESS_ERR = 32,
	AWK_DUE_REQ_ERR = 64,
	AWK_DUE_LAST_WQE = 128,
	AWK_DUE_SRQ_LIMIT = 256,
};

static inline struct awk_qp *awk_qp_of(struct ib_qp *base)
{
	return container_of(base, struct awk_qp, base);
}

/*
 * Queues the worker, which sees to all that is due: WRs in the rings, bytes, the stream's end. Any context, any lock:
 * never sleeps.
 */
static inline void awk_qp_kick(struct awk_qp *qp)
{
	queue_work(awk_wq, &qp->work);
}

/*
 * Makes the QP's rings, memory and core, in IDLE, with one reference; no look-up finds it before awk_qp_enlist. Without a
 * stream. 0, or an error that leaves nothing. fini: once there is no reference.
 */
int awk_qp_init(struct awk_qp *qp, const struct ib_qp_init_attr *attr, struct ib_udata *udata);
void awk_qp_fini(struct awk_qp *qp);
/* Begins the core anew, in IDLE: at create, and for a QP in ERROR whose stream is over. With the lock. */
void awk_qp_core_init(struct awk_qp *qp);

/* Gives the QP its number. 0 or -ENOMEM, -EBUSY. */
int awk_qp_enlist(struct awk_qp *qp);
/* Ends the look-ups. */
void awk_qp_delist(struct awk_qp *qp);
/*
 * Finds the QP of this number, with a reference; NULL when there is none. Process context,
 * interrupts on or off.
 */
struct awk_qp *awk_qp_find(struct awk_device *dev, u32 qpn);
/* Any context. */
void awk_qp_put(struct awk_qp *qp);
/* Gives up the creator's reference, and waits for the last one. */
void awk_qp_put_wait(struct awk_qp *qp);

/*
 * The QP lock, for every call into qp->core (process context or softirq). unlock calls the handlers
 * and events that became due, after it has released the lock; the caller has a reference, or the QP
 * cannot go.
 */
void awk_qp_lock(struct awk_qp *qp);
void awk_qp_unlock(struct awk_qp *qp);
/*
 * Likewise, for a thread that posts and may hold locks that a consumer's handler takes: leaves to the worker whatever such a
 * handler is to be told.
 */
void awk_qp_unlock_posted(struct awk_qp *qp);

/*
 * Called with the lock: moves WRs of the rings into the core, as far as it has room; in a QP that
 * was flushed, receives too. Called before aw_tx_next, and after anything that completes WRs. Does
 * nothing in IDLE.
 */
void awk_qp_drain(struct awk_qp *qp);

/* The functions that the core calls (ctx: struct awk_qp). */
extern const struct aw_ops awk_ops;

#endif
