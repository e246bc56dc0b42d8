// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From the send queue's ring into the core.
#include "kmod/qp/qp.h"
#include "kmod/qp/sqe.h"

/*
 * Moves the entry, which is valid, into the core: a Read with invalidate as two WRs. Only a call that finds an entry has a copy of
 * it: many kernels clear variables before their use.
 */
static void core_post(struct awk_qp *qp, struct siw_sqe *at)
{
	struct aw_swqe *wqe = aw_sq_reserve(&qp->core.sq);
	struct siw_sqe sqe;
	bool invalidates;

	memcpy(&sqe, at, sizeof(sqe));
	/*
	 * The entry is the poster's again. A program looks at it after its next entry, and rings
	 * when it is free: so the next entry is looked at after this store.
	 */
	smp_store_mb(at->flags, 0);
	qp->sq_get++;
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
	const struct aw_sq *sq = &qp->core.sq;
	u32 slots = qp->user ? 1 : 2; /* of the core, for an entry */
	u32 budget = qp->sq.count; /* a program may fill it as fast as it is emptied */
	struct siw_sqe *at;

	lockdep_assert_held(&qp->lock);
	if (qp->core.state == AW_QP_IDLE)
		return;
	while (budget > 0 && sq->capacity - aw_sq_count(sq) >= slots) {
		at = (struct siw_sqe *)qp->sq.mem + (qp->sq_get & (qp->sq.count - 1));
		/* Pairs with the release by which it was made valid. */
		if (!(smp_load_acquire(&at->flags) & SIW_WQE_VALID))
			break;
		core_post(qp, at);
		budget--;
	}
	aw_qp_recv_posted(&qp->core);
	if ((budget == 0 && qp->sq.count > 0) || (qp->recv_budget == 0 && qp->recvs.ring.count > 0))
		awk_qp_kick(qp);
}
