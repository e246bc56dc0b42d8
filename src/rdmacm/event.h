// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An event on its way from an id to the program, and the counting of those not acked yet.
#ifndef RDMACM_EVENT_H
#define RDMACM_EVENT_H

#include "rdmacm/id.h"

#include <stdint.h>
#include <sys/queue.h>

#define AW_CM_PD_MAX 255 /* octets: what the API's length can say */

struct aw_cm_event {
	struct rdma_cm_event event; /* the program's view; must be first */
	struct aw_cm_id *owner; /* who counts it: of a Request the listener */
	TAILQ_ENTRY(aw_cm_event) entry;
	uint8_t private_data[AW_CM_PD_MAX];
};

/* 0, and an event is kept for when memory is out; or ENOMEM. */
int aw_cm_event_spare(struct aw_cm_id *cm);

/* NULL when memory is out and the spare event is in use, which is logged. */
struct aw_cm_event *aw_cm_event_create(struct aw_cm_id *owner, enum rdma_cm_event_type type,
				       int status);

/* ev may be NULL; its owner is there. */
void aw_cm_event_destroy(struct aw_cm_event *ev);

/* Private data and read limits as a peer's start-up frame brought them. */
void aw_cm_event_describe(struct aw_cm_event *ev, const struct aw_mpa_result *result);

/* Queues ev (NULL is allowed) on its owner's channel. The owner's lock is held. */
void aw_cm_event_raise(struct aw_cm_event *ev);

/* create and raise in one, with no data. The id's lock is held. */
void aw_cm_event_tell(struct aw_cm_id *cm, enum rdma_cm_event_type type, int status);

/* Waits until the program acked all events that it took. */
void aw_cm_event_wait_acked(struct aw_cm_id *cm);

#endif
