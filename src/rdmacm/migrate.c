// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rdma_migrate_id: an id and its unread events move to another channel; with NULL the id becomes
// synchronous on a channel of its own.
#include "rdmacm/event.h"
#include "rdmacm/fail.h"
#include "ring/lock.h"

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	if (!id)
		return aw_cm_fail(EINVAL);
	struct aw_cm_id *cm = aw_cm_id_of(id);
	struct rdma_event_channel *own = channel ? NULL : rdma_create_event_channel();
	struct rdma_event_channel *old = cm->sync ? id->channel : NULL;

	if (!channel && !own)
		return -1;
	aw_cm_id_release_event(cm);
	struct rdma_event_channel *to = channel ? channel : own;
	struct aw_cm_event_list unread = TAILQ_HEAD_INITIALIZER(unread);
	struct aw_cm_event *ev;

	aw_lock(&cm->lock);
	aw_cm_channel_remove(cm->id.channel, cm, &unread);
	/* How many events the program has from the old channel. */
	uint32_t taken = atomic_load_explicit(&cm->events_taken, memory_order_relaxed);

	while ((ev = TAILQ_FIRST(&unread))) {
		TAILQ_REMOVE(&unread, ev, entry);
		aw_cm_channel_push(to, ev);
	}
	cm->id.channel = to;
	cm->sync = own != NULL;
	aw_unlock(&cm->lock);

	/* A thread that takes an event from the new channel may wait for the one that migrates the id. */
	aw_lock(&cm->lock);
	while ((int32_t)(cm->events_acked - taken) < 0)
		pthread_cond_wait(&cm->changed, &cm->lock);
	aw_unlock(&cm->lock);
	rdma_destroy_event_channel(old);
	return 0;
}
