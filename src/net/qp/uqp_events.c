// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The events that a QP's owners are due, by its core's state.
#include "net/qp/replied.h"
#include "net/qp/uqp_sock.h"

/*
 * The event for the way the stream failed, or 0. Failed requests of the peer have events of their
 * own: layers 0 and 1 have type 1 for protection errors and type 2 for other bad messages (RFC 5040
 * 4.8).
 */
static uint32_t failure(const struct aw_qp *core)
{
	enum aw_error err = core->error;

	if (core->peer_error)
		return AW_UQP_FATAL;
	if (err == AW_OK || err == AW_E_MPA_CLOSED)
		return 0;
	if (aw_error_layer(err) > 1 || aw_error_type(err) == 0)
		return AW_UQP_FATAL;
	if (aw_error_type(err) == 1 && err != AW_E_DDP_TAGGED_VERSION)
		return AW_UQP_ACCESS_ERR;
	return AW_UQP_REQ_ERR;
}

void aw_uqp_note_events(struct aw_uqp *qp)
{
	const struct aw_qp *core = &qp->core;
	bool over = core->state == AW_QP_TERMINATE || core->state == AW_QP_ERROR;

	if (core->peer_ready && !(qp->events_due & AW_UQP_READY)) {
		aw_replied_end(qp);
		qp->events_due |= AW_UQP_READY;
	}
	if (qp->attached && (over || core->peer_closed))
		qp->events_due |= AW_UQP_CLOSED;
	if (qp->attached && over && !qp->leaves)
		qp->events_due |= failure(core);
	if (qp->drain_asked && aw_qp_is_drained(core))
		qp->events_due |= AW_UQP_DRAINED;
	if (core->state == AW_QP_ERROR && qp->attr.srq)
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
