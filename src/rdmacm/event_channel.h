// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An event channel: a queue of events behind an fd that is readable while the queue holds any.
#ifndef RDMACM_EVENT_CHANNEL_H
#define RDMACM_EVENT_CHANNEL_H

#include <stdbool.h>
#include <sys/queue.h>

#include <rdma/rdma_cma.h>

struct aw_cm_event;
struct aw_cm_id;

TAILQ_HEAD(aw_cm_event_list, aw_cm_event);

/* Adds ev at the end of channel's queue. Never blocks. */
void aw_cm_channel_push(struct rdma_event_channel *channel, struct aw_cm_event *ev);

/*
 * Takes the oldest event and counts it on its owner. Waits unless the fd has O_NONBLOCK. 0, or
 * EAGAIN, EBADF, EINTR. The caller has disabled cancellation; during the wait its state is
 * cancel_state.
 */
int aw_cm_channel_take(struct rdma_event_channel *channel, int cancel_state,
		       struct aw_cm_event **ev);

/* True when an event of this type waits now. */
bool aw_cm_channel_holds(struct rdma_event_channel *channel, enum rdma_cm_event_type type);

/* Moves the waiting events of owner to list, in their order. channel may be NULL. */
void aw_cm_channel_remove(struct rdma_event_channel *channel, const struct aw_cm_id *owner,
			  struct aw_cm_event_list *list);

#endif
