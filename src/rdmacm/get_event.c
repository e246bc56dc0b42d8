// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Events as the program takes and acknowledges them. A destroyed id waits until its events are acknowledged.
#include "rdmacm/event.h"
#include "rdmacm/fail.h"
#include "rdmacm/listen.h"
#include "rdmacm/stream.h"
#include "rdmacm/ud.h"
#include "ring/lock.h"

#include <errno.h>
#include <stdatomic.h>

void aw_cm_event_wait_acked(struct aw_cm_id *cm)
{
	aw_lock(&cm->lock);
	while (cm->events_acked != atomic_load_explicit(&cm->events_taken, memory_order_relaxed))
		pthread_cond_wait(&cm->changed, &cm->lock);
	aw_unlock(&cm->lock);
}

/*
 * A cancellation point, as with the kernel's rdma_cm, but not while the thread holds locks. The
 * test comes first, since a thread that cancels this one may destroy the channel next.
 */
int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct aw_cm_event *ev;
	int cancel_state;

	pthread_testcancel();
	if (!channel || !event)
		return aw_cm_fail(EINVAL);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	int err = aw_cm_channel_take(channel, cancel_state, &ev);

	if (!err && ev->event.event == RDMA_CM_EVENT_CONNECT_REQUEST)
		err = aw_cm_listen_hand_over(ev, channel);
	if (!err && ev->event.event == RDMA_CM_EVENT_MULTICAST_JOIN)
		aw_cm_group_joined(ev);
	if (!err && ev->event.event == RDMA_CM_EVENT_REJECTED)
		aw_cm_qp_flush(ev->owner);
	pthread_setcancelstate(cancel_state, NULL);
	if (err)
		return aw_cm_fail(err);
	*event = &ev->event;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	if (!event)
		return aw_cm_fail(EINVAL);
	struct aw_cm_event *ev = (struct aw_cm_event *)event;
	struct aw_cm_id *owner = ev->owner;
	struct aw_cm_group *group = ev->group;

	aw_cm_event_destroy(ev);
	aw_lock(&owner->lock);
	if (group)
		aw_cm_group_acked(group);
	owner->events_acked++;
	pthread_cond_broadcast(&owner->changed);
	aw_unlock(&owner->lock);
	return 0;
}
