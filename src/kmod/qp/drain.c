// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From the send queue's ring into the core.
#include "kmod/qp/qp.h"
#include "kmod/qp/sqe.h"

/* The next entry; NULL when there is none. */
static struct siw_sqe *sq_next(const struct awk_qp *qp)
{
	struct siw_sqe *at = (struct siw_sqe *)qp->sq.mem + (qp->sq_get & (qp->sq.count - 1));

	/* Pairs with the release by which it was made valid. */
	return qp->sq.count > 0 && (smp_load_acquire(&at->flags) & SIW_WQE_VALID) ? at : NULL;
}

static void sq_take(struct awk_qp *qp, struct siw_sqe *at, struct siw_sqe *sqe)
{
	memcpy(sqe, at, sizeof(*sqe));
	/*
	 * The entry is the poster's again. A program looks at it after its next entry, and rings
	 * when it is free: so the next entry is looked at after this store.
	 */
	smp_store_mb(at->flags, 0);
	qp->sq_get++;
}

/* A Read with invalidate takes two slots. */
static bool core_has_room(const struct awk_qp *qp)
{
	const struct aw_sq *sq = &qp->core.sq;

	return sq->capacity - aw_sq_count(sq) >= (qp->user ? 1 : 2);
}

/* Only a call that finds an entry has a copy of it: many kernels clear variables before their use. */
static void core_post(struct awk_qp *qp, struct siw_sqe *at)
{
	struct aw_swqe *wqe = aw_sq_reserve(&qp->core.sq);
	struct siw_sqe sqe;
	bool invalidates;

	sq_take(qp, at, &sqe);
	awk_sqe_to_wqe(&sqe, qp->user, qp->cap.max_send_sge, wqe);
	invalidates = wqe->mark == AWK_MARK_READ_HALF;
	aw_qp_post(&qp->core);
	if (!invalidates)
		return;
	awk_sqe_to_inv(&sqe, aw_sq_reserve(&qp->core.sq));
	aw_qp_post(&qp->core);
}

void awk_qp_drain(struct awk_qp *qp)
{
	u32 budget = qp->sq.count; /* a program may fill it as fast as it is emptied */
	struct siw_sqe *at;

	lockdep_assert_held(&qp->lock);
	if (qp->core.state == AW_QP_IDLE)
		return;
	while (core_has_room(qp) && budget > 0 && (at = sq_next(qp))) {
		core_post(qp, at);
		budget--;
	}
	aw_qp_recv_posted(&qp->core);
	if ((budget == 0 && qp->sq.count > 0) || (qp->recv_budget == 0 && qp->recvs.ring.count > 0))
		awk_qp_kick(qp);
}
