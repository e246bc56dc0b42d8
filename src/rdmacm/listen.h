// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From a listener's Request to an id of the program.
#ifndef RDMACM_LISTEN_H
#define RDMACM_LISTEN_H

#include "rdmacm/event.h"

/*
 * Raises the event of a Request that the listener has counted. False: memory is out, and conn is
 * left alone.
 */
bool aw_cm_listen_offer(struct aw_cm_id *listener, struct aw_conn *conn);

/* Counts a Request until the program takes its event. False: the backlog is full. */
bool aw_cm_listen_reserve(struct aw_cm_id *listener);
void aw_cm_listen_unreserve(struct aw_cm_id *listener);

/*
 * Called when the program takes the event of a Request from channel: the Request's id becomes the
 * program's. 0; or EMFILE, ENFILE, ENOMEM, and the Request was rejected and the event is gone.
 */
int aw_cm_listen_hand_over(struct aw_cm_event *ev, struct rdma_event_channel *channel);

#endif
