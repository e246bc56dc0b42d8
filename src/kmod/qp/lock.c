// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The QP lock, and the events that consumers get after it.
#include "kmod/qp/qp.h"

#include "core/failure.h"

static const u32 failures[] = {
	[AW_FAILURE_NONE] = 0,
	[AW_FAILURE_FATAL] = AWK_DUE_FATAL,
	[AW_FAILURE_ACCESS] = AWK_DUE_ACCESS_ERR,
	[AW_FAILURE_REQUEST] = AWK_DUE_REQ_ERR,
};

void awk_qp_lock(struct awk_qp *qp)
{
	spin_lock_bh(&qp->lock);
	qp->recv_budget = qp->recvs.ring.count;
}

/*
 * A CQ that lost a completion ends its QPs, each with the next thing that happens to it. RFC 5040
 * 7.1 rule 1: a Terminate notifies the peer.
 */
static void end_overflowed(struct awk_qp *qp)
{
	lockdep_assert_held(&qp->lock);
	if (!READ_ONCE(qp->send_cq->overflowed) && !READ_ONCE(qp->recv_cq->overflowed))
		return;
	if (qp->core.state >= AW_QP_TERMINATE)
		return;
	aw_qp_terminate(&qp->core, AW_E_LOCAL_CATASTROPHIC);
	awk_qp_kick(qp);
}

/* Takes the handlers and events that are due. */
static u32 take_due(struct awk_qp *qp)
{
	const u32 once = AWK_DUE_FATAL | AWK_DUE_ACCESS_ERR | AWK_DUE_REQ_ERR | AWK_DUE_LAST_WQE;
	u32 due = qp->due | failures[aw_failure_of(&qp->core)];

	lockdep_assert_held(&qp->lock);
	if (qp->core.state == AW_QP_ERROR && qp->srq)
		due |= AWK_DUE_LAST_WQE;
	due &= ~(qp->delivered & once);
	qp->delivered |= due & once;
	qp->due = 0;
	return due;
}

static void notify_cq(struct awk_cq *cq, bool notify, bool overflow)
{
	if (overflow && cq->base.event_handler) {
		struct ib_event event = {
			.device = cq->base.device,
			.element.cq = &cq->base,
			.event = IB_EVENT_CQ_ERR,
		};

		cq->base.event_handler(&event, cq->base.cq_context);
	}
	if (notify && cq->base.comp_handler)
		cq->base.comp_handler(&cq->base, cq->base.cq_context);
}

static void notify_qp(struct awk_qp *qp, enum ib_event_type type)
{
	struct ib_event event = {
		.device = qp->base.device,
		.element.qp = &qp->base,
		.event = type,
	};

	if (qp->base.event_handler)
		qp->base.event_handler(&event, qp->base.qp_context);
}

static void notify_srq(struct ib_srq *srq)
{
	struct ib_event event = {
		.device = srq->device,
		.element.srq = srq,
		.event = IB_EVENT_SRQ_LIMIT_REACHED,
	};

	if (srq->event_handler)
		srq->event_handler(&event, srq->srq_context);
}

static void notify(struct awk_qp *qp, u32 due)
{
	notify_cq(qp->send_cq, due & AWK_DUE_SEND_CQ, due & AWK_DUE_SEND_OVERFLOW);
	notify_cq(qp->recv_cq, due & AWK_DUE_RECV_CQ, due & AWK_DUE_RECV_OVERFLOW);
	if (due & AWK_DUE_FATAL)
		notify_qp(qp, IB_EVENT_QP_FATAL);
	if (due & AWK_DUE_ACCESS_ERR)
		notify_qp(qp, IB_EVENT_QP_ACCESS_ERR);
	if (due & AWK_DUE_REQ_ERR)
		notify_qp(qp, IB_EVENT_QP_REQ_ERR);
	if (due & AWK_DUE_LAST_WQE)
		notify_qp(qp, IB_EVENT_QP_LAST_WQE_REACHED);
	if (due & AWK_DUE_SRQ_LIMIT)
		notify_srq(&qp->srq->base);
}

/* The softirq that a handler raises runs as softirqs are enabled again, without waking ksoftirqd. */
static void unlock_and_notify(struct awk_qp *qp, u32 due)
{
	spin_unlock(&qp->lock);
	if (due)
		notify(qp, due);
	local_bh_enable();
}

void awk_qp_unlock(struct awk_qp *qp)
{
	end_overflowed(qp);
	unlock_and_notify(qp, take_due(qp));
}

/* ib_core's own handler only schedules the polling of its CQs, which are those with an array for that. */
static u32 due_of_pools(const struct awk_qp *qp)
{
	return (qp->send_cq->base.wc ? AWK_DUE_SEND_CQ : 0) |
	       (qp->recv_cq->base.wc ? AWK_DUE_RECV_CQ : 0);
}

void awk_qp_unlock_posted(struct awk_qp *qp)
{
	u32 due;

	end_overflowed(qp);
	due = take_due(qp);
	if (due & ~due_of_pools(qp)) {
		qp->due = due;
		qp->delivered &= ~due;
		due = 0;
		awk_qp_kick(qp);
	}
	unlock_and_notify(qp, due);
}
