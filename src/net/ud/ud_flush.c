// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The end of what a UD QP has posted: its WRs give their address handles back, and a QP that fails flushes them.
#include "net/ud/ud.h"

void aw_ud_drop_handle(struct aw_swqe *wqe)
{
	if (wqe->to)
		aw_ah_put((struct aw_ah *)(uintptr_t)wqe->to);
	wqe->to = 0;
}

void aw_ud_drop_handles(struct aw_uqp *qp)
{
	const struct aw_sq *sq = &qp->core.sq;

	for (uint32_t i = sq->head; i != sq->tail; i++)
		aw_ud_drop_handle(aw_sq_at(sq, i));
}

/* IBTA: everything is flushed; the QP takes no receive of its SRQ any more. */
void aw_ud_fail(struct aw_uqp *qp)
{
	qp->ud->state = AW_UD_ERR;
	aw_ud_drop_handles(qp);
	aw_qp_abort(&qp->core, AW_OK);
	if (qp->attr.srq)
		qp->events_due |= AW_UQP_LAST_WQE;
}

void aw_ud_settle(struct aw_uqp *qp)
{
	if (qp->ud->state < AW_UD_RTR || qp->ud->state == AW_UD_ERR || !aw_uqp_has_overflowed(qp))
		return;
	qp->events_due |= AW_UQP_FATAL;
	aw_ud_fail(qp);
}
