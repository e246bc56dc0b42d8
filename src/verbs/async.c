// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Asynchronous events of a context: reading and acknowledging. Objects raise them themselves, those of the port port_watch.c.
#include "verbs/ack.h"
#include "verbs/context.h"
#include "verbs/limits.h"
#include "verbs/port_watch.h"

#include <errno.h>

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	void *object;
	int kind, err;

	vb_port_watch_begin();
	err = aw_channel_read(&vb_context_of(context)->async, &object, &kind);
	if (err) {
		errno = err;
		return -1;
	}
	if (object)
		event->element.qp = object; /* or cq or srq: all are pointers */
	else
		event->element.port_num = VB_PORT;
	event->event_type = (enum ibv_event_type)kind;
	return 0;
}

/*
 * An event of the device or a port belongs to no object that waits for it. Newer headers have more
 * such events.
 */
void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	switch ((int)event->event_type) {
	case IBV_EVENT_CQ_ERR:
		cq = event->element.cq;
		vb_ack_add((struct vb_ack){ &cq->mutex, &cq->cond, &cq->async_events_completed },
			   1);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		qp = event->element.qp;
		vb_ack_add((struct vb_ack){ &qp->mutex, &qp->cond, &qp->events_completed }, 1);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		srq = event->element.srq;
		vb_ack_add((struct vb_ack){ &srq->mutex, &srq->cond, &srq->events_completed }, 1);
		break;
	}
}
