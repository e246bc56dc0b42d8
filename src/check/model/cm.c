// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/model/cm.h"

#include "check/model/acked.h"
#include "check/report/report.h"

#include <pthread.h>
#include <stdlib.h>

#define UNACKED_MAX 256 /* events that are followed; of one beyond that, nothing is told */

struct unacked {
	struct rdma_cm_event *event; /* NULL: free */
	const struct rdma_cm_id *id, *listen_id;
	bool is_settled; /* acknowledged in the program's place, whose own acknowledgement is left out */
	struct aw_stack got;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct unacked unacked[UNACKED_MAX];

static void id_free(struct aw_object *object)
{
	free(object);
}

void aw_cm_id_add(const struct rdma_cm_id *id)
{
	struct aw_object *object = calloc(1, sizeof(*object));

	if (!object)
		return;
	object->kind = AW_KIND_CM_ID;
	object->handle = id;
	object->free = id_free;
	aw_object_add(object);
}

static struct unacked *unacked_find(const struct rdma_cm_event *event)
{
	for (unsigned i = 0; i < UNACKED_MAX; i++) {
		if (unacked[i].event == event)
			return &unacked[i];
	}
	return NULL;
}

void aw_cm_event_got(struct rdma_cm_event *event)
{
	struct unacked *entry;

	pthread_mutex_lock(&lock);
	entry = unacked_find(event); /* one that was settled, and whose memory is in use again */
	if (!entry)
		entry = unacked_find(NULL);
	if (entry) {
		*entry = (struct unacked){ .event = event,
					   .id = event->id,
					   .listen_id = event->listen_id };
		aw_stack_take(&entry->got);
	}
	pthread_mutex_unlock(&lock);
}

bool aw_cm_event_acked(struct rdma_cm_event *event)
{
	struct unacked *entry;
	bool is_settled;

	pthread_mutex_lock(&lock);
	entry = unacked_find(event);
	is_settled = entry && entry->is_settled;
	if (entry)
		entry->event = NULL;
	pthread_mutex_unlock(&lock);
	aw_acked_tell();
	return !is_settled;
}

/* True for an event that the id's destroy waits for. Under the lock. */
static bool is_awaited(const struct unacked *entry, const struct rdma_cm_id *id)
{
	return entry->event && !entry->is_settled && (entry->id == id || entry->listen_id == id);
}

static bool id_is_acked(const void *id)
{
	bool is_acked = true;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < UNACKED_MAX && is_acked; i++)
		is_acked = !is_awaited(&unacked[i], id);
	pthread_mutex_unlock(&lock);
	return is_acked;
}

/* The next event that the id's destroy waits for; it counts as settled. */
static bool next_settle(const struct rdma_cm_id *id, struct unacked *found)
{
	bool is_found = false;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < UNACKED_MAX && !is_found; i++) {
		struct unacked *entry = &unacked[i];

		if (!is_awaited(entry, id))
			continue;
		entry->is_settled = is_found = true;
		*found = *entry;
	}
	pthread_mutex_unlock(&lock);
	return is_found;
}

void aw_cm_events_settle(struct aw_object *id, int (*ack)(struct rdma_cm_event *event))
{
	char name[AW_OBJECT_NAME_MAX];
	struct unacked found;

	if (aw_acked_wait(id_is_acked, id->handle))
		return;
	aw_object_name(id, name);
	while (next_settle(id->handle, &found)) {
		aw_report(
			&(struct aw_report){
				.rule = AW_RULE_EVENT_UNACKED,
				.object = name,
				.earlier = { { "the event was got here", &found.got } } },
			"%s is destroyed while its event %s is not acknowledged: without the checker the call would wait for ever",
			name, rdma_event_str(found.event->event));
		(void)ack(found.event);
	}
}

void aw_cm_events_forget(void)
{
	pthread_mutex_init(&lock, NULL);
	for (unsigned i = 0; i < UNACKED_MAX; i++)
		unacked[i].event = NULL;
}
