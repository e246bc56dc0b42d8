// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The shadows of rdma_cm_ids, with the events that the program has got and not acknowledged: rdma_destroy_id waits for these.
#ifndef CHECK_MODEL_CM_H
#define CHECK_MODEL_CM_H

#include "check/model/object.h"

#include <rdma/rdma_cma.h>

void aw_cm_id_add(const struct rdma_cm_id *id);

/* The program has got the event; it counts for its id, and for the listener of a connect request. */
void aw_cm_event_got(struct rdma_cm_event *event);
/* The program acknowledges the event. False: aw_cm_events_settle did so in its place. */
bool aw_cm_event_acked(struct rdma_cm_event *event);

/*
 * Tells events of the id that the program does not acknowledge in time (model/acked.h), and acknowledges them in its place by ack, or the destroy
 * would wait for ever.
 */
void aw_cm_events_settle(struct aw_object *id, int (*ack)(struct rdma_cm_event *event));

/* In the child of a fork. */
void aw_cm_events_forget(void);

#endif
