// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP as verbs see it, over the QP of the driver.
#ifndef VERBS_QP_H
#define VERBS_QP_H

#include "base/thread_safety.h"
#include "net/qp/uqp.h"
#include "net/ud/ud.h"
#include "verbs/newer.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define VB_QP_SOURCES 6 /* kinds of async events */

struct vb_comp_cntr;

struct vb_qp {
	/* fixed after create */
	/* begins with a whole struct ibv_qp; wr_start is NULL unless it is extended */
	union {
		struct ibv_qp_ex ibv;
		union vb_qp_ex newer;
	};
	struct aw_uqp *uqp;
	struct vb_target *target; /* of a handle of a target QP (verbs/qp_target.h); else NULL */
	struct ibv_xrcd *xrcd; /* likewise: the one that the handle was made with */
	/* aw_uqp_send_end, or in its place that of a UD QP or of one that varies (net/qp/varied.h) */
	void (*send_end)(struct aw_uqp *uqp);
	struct ibv_qp_init_attr init; /* cap as granted */

	/*
	 * The state that the program moved the QP to; in the iwarp persona RESET, or INIT for all
	 * others. While the core is IDLE it is the QP's state.
	 */
	_Atomic enum ibv_qp_state walked;

	struct vb_comp_cntr *counters[AW_COUNTED]; /* NULL: none; guarded by the driver's QP lock */

	struct aw_source source[VB_QP_SOURCES]; /* raised on the context's channel */

	struct ibv_qp_attr attr; /* the attributes that were set; guarded by the ibv_qp's mutex */

	TAILQ_ENTRY(vb_qp) target_entry; /* of a handle; guarded by vb_xrc_lock */

	bool refusal_told; /* the refusal of a post was logged; guarded by the driver's QP lock */

	/* Serializes the calls that post to the send queue; taken before the driver's QP lock. */
	aw_mutex post_lock;
	/* from ibv_wr_start to ibv_wr_complete or _abort, which hold post_lock */
	uint32_t wr_tail; /* of the send queue, where the WRs are built */
	struct aw_swqe *wr; /* the one built last, while it takes more; or NULL */
	uint32_t wr_count; /* built and not committed */
	int wr_err; /* the first error */
};

static inline struct vb_qp *vb_qp_of(struct ibv_qp *qp)
{
	return (struct vb_qp *)qp;
}

static inline enum ibv_qp_state vb_qp_walked(const struct vb_qp *qp)
{
	return atomic_load_explicit(&qp->walked, memory_order_relaxed);
}

static inline void vb_qp_walk(struct vb_qp *qp, enum ibv_qp_state state)
{
	atomic_store_explicit(&qp->walked, state, memory_order_relaxed);
}

/* Takes a step back, unless another thread has gone on from there. */
static inline void vb_qp_walk_back(struct vb_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
	atomic_compare_exchange_strong_explicit(&qp->walked, &from, to, memory_order_relaxed,
						memory_order_relaxed);
}

/* Writes what vb_qp_state returns to qp->state, and returns it. */
enum ibv_qp_state vb_qp_state_sync(struct ibv_qp *qp);

/* The state that verbs show: the core's, and RESET or INIT where the core has only IDLE. */
enum ibv_qp_state vb_qp_state(struct vb_qp *qp);

/*
 * ibv_modify_qp in the roce persona, where it also connects the QP (qp_roce.c). A QP of that
 * persona begins in RESET.
 */
int vb_qp_roce_modify(struct vb_qp *qp, struct ibv_qp_attr *attr, int mask);
enum ibv_qp_state vb_qp_roce_state(struct vb_qp *qp);
/* Called when rdma_cm may have connected the QP. */
void vb_qp_roce_follow_cm(struct vb_qp *qp);

/* True when a send may be posted in the QP's state. */
static inline bool vb_qp_may_send(struct vb_qp *qp) AW_REQUIRES(qp->uqp->lock)
{
	const struct aw_qp *core = &qp->uqp->core;

	if (qp->uqp->ud)
		return aw_ud_may_post(qp->uqp);
	if (core->state == AW_QP_IDLE)
		return core->posts_early;
	/* In RTR a connection that exists already does not make the QP RTS. */
	return vb_qp_walked(qp) != IBV_QPS_RTR || core->state >= AW_QP_TERMINATE;
}

/* The same two functions for a UD QP (qp_ud.c). */
int vb_qp_ud_modify(struct vb_qp *qp, const struct ibv_qp_attr *attr, int mask);
enum ibv_qp_state vb_qp_ud_state(struct vb_qp *qp);

/* For qp_roce.c: the checks and acts that both personas share, in qp_attr.c. */
int vb_qp_attr_check(const struct ibv_qp_attr *attr, int mask);
void vb_qp_attr_keep(struct ibv_qp_attr *kept, const struct ibv_qp_attr *attr, int mask);
void vb_qp_access_grant(struct vb_qp *qp, unsigned int access);

/* Called when the driver's QP is gone: its counters may be destroyed (comp_cntr.c). */
void vb_qp_counters_leave(struct vb_qp *qp);
/* The async events of a QP: before it has any, for each, and when none comes any more, until those read are acknowledged. */
void vb_qp_sources_begin(struct vb_qp *qp);
void vb_qp_event(struct vb_qp *qp, uint32_t events);
void vb_qp_sources_end(struct vb_qp *qp);

/* Fills in the functions that build WRs. */
void vb_qp_wr_init(struct vb_qp *qp);

#endif
