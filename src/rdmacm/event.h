// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An event on its way from an id to the program, and the count of those not acknowledged yet.
#ifndef RDMACM_EVENT_H
#define RDMACM_EVENT_H

#include "rdmacm/id.h"

#include <stdint.h>
#include <sys/queue.h>

#define AW_CM_PD_MAX 255 /* bytes: the most that the API's length can express */

struct aw_cm_event {
	struct rdma_cm_event event; /* the program's view; must be first */
	struct aw_cm_id *owner; /* the id that counts it: for a Request the listener's */
	/* MULTICAST_JOIN, also where attaching the QP failed: what was joined; otherwise NULL */
	struct aw_cm_group *group;
	TAILQ_ENTRY(aw_cm_event) entry;
	uint8_t private_data[AW_CM_PD_MAX];
};

/* Keeps an event for when memory is out. 0 or ENOMEM. */
int aw_cm_event_spare(struct aw_cm_id *cm);

/* NULL when memory is out and the spare event is in use, which is logged. */
struct aw_cm_event *aw_cm_event_create(struct aw_cm_id *owner, enum rdma_cm_event_type type,
				       int status);

/* ev may be NULL; its owner must exist. */
void aw_cm_event_destroy(struct aw_cm_event *ev);

/* Sets private data and read limits from a peer's start-up frame. */
void aw_cm_event_describe(struct aw_cm_event *ev, const struct aw_mpa_result *result);

/* Queues ev (NULL is allowed) on its owner's channel. The caller holds the owner's lock, which is asserted. */
void aw_cm_event_raise(struct aw_cm_event *ev);

/* Creates and raises an event without data. */
void aw_cm_event_tell(struct aw_cm_id *cm, enum rdma_cm_event_type type, int status)
	AW_REQUIRES(cm->lock);

/* Waits until the program has acknowledged all events that it took. */
void aw_cm_event_wait_acked(struct aw_cm_id *cm) AW_EXCLUDES(cm->lock);

#endif
