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

/* At the end of channel's queue. Never blocks. */
void aw_cm_channel_push(struct rdma_event_channel *channel, struct aw_cm_event *ev);

/*
 * Takes the oldest event and counts it on its owner. Waits as the fd's O_NONBLOCK says. 0, or
 * EAGAIN, EINTR. The caller has disabled cancellation; in its sleep it
 * is as cancel_state says.
 */
int aw_cm_channel_take(struct rdma_event_channel *channel, int cancel_state,
		       struct aw_cm_event **ev);

/* An event of this type waits now. */
bool aw_cm_channel_holds(struct rdma_event_channel *channel, enum rdma_cm_event_type type);

/* Moves the events that owner has waiting to list, in their order. channel may be NULL. */
void aw_cm_channel_remove(struct rdma_event_channel *channel, const struct aw_cm_id *owner,
			  struct aw_cm_event_list *list);

/*
 * Around a fork. In a child that carries on each channel has an eventfd of its own, by the same number and
 * with the events that wait. take_over: those that had none to get then. 0, or EMFILE, ENFILE, ENOMEM.
 */
void aw_cm_channel_fork_prepare(void);
void aw_cm_channel_fork_parent(void);
void aw_cm_channel_fork_child(bool carries);
int aw_cm_channel_take_over(void);

#endif
