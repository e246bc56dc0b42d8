// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The events that a QP's owners are due, by its core's state.
#include "core/failure.h"
#include "net/qp/replied.h"
#include "net/qp/uqp_sock.h"

static const uint32_t failures[] = {
	[AW_FAILURE_NONE] = 0,
	[AW_FAILURE_FATAL] = AW_UQP_FATAL,
	[AW_FAILURE_ACCESS] = AW_UQP_ACCESS_ERR,
	[AW_FAILURE_REQUEST] = AW_UQP_REQ_ERR,
};

void aw_uqp_note_events(struct aw_uqp *qp)
{
	const struct aw_qp *core = &qp->core;
	bool over = core->state == AW_QP_TERMINATE || core->state == AW_QP_ERROR;

	if (core->peer_ready && !(qp->events_due & AW_UQP_READY)) {
		aw_replied_end(qp);
		qp->events_due |= AW_UQP_READY;
	}
	if (core->peer_began)
		qp->events_due |= AW_UQP_BEGUN;
	if (qp->attached && (over || core->peer_closed))
		qp->events_due |= AW_UQP_CLOSED;
	/* As on InfiniBand, a completion and no event reports what the peer refused. */
	if (qp->attached && !qp->leaves && !(qp->by_rc && core->peer_error))
		qp->events_due |= failures[aw_failure_of(core)];
	if (qp->drain_asked && aw_qp_is_drained(core))
		qp->events_due |= AW_UQP_DRAINED;
	if (core->state == AW_QP_ERROR && (qp->attr.srq || qp->attr.xrcd))
		qp->events_due |= AW_UQP_LAST_WQE;
}

void aw_uqp_note_delivered(struct aw_uqp *qp)
{
	if (qp->tells_delivered)
		qp->events_due |= AW_UQP_DELIVERED;
	qp->tells_delivered = false;
	qp->lingers = 0;
}

void aw_uqp_note_end(struct aw_uqp *qp)
{
	if (qp->attached && !aw_uqp_is_inherited(qp))
		qp->events_due |= AW_UQP_CLOSED;
	aw_uqp_note_delivered(qp);
}
