// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Acknowledging events. A thread that destroys an object waits until every event of it that was
// read has been acknowledged, so that no reader still looks at it (man ibv_get_async_event, NOTES).
#ifndef VERBS_ACK_H
#define VERBS_ACK_H

#include "base/thread_safety.h"

#include <infiniband/verbs.h>
#include <stdint.h>

/* The lock, condition and count that verbs.h puts into the object. */
struct vb_ack {
	aw_mutex *mutex;
	pthread_cond_t *cond;
	uint32_t *completed;
};

void vb_ack_add(struct vb_ack ack, uint32_t count);

/*
 * Returns when at least `taken` events were acknowledged. Returns at once, and takes no lock, in the child of a fork where the object's context is
 * the parent's: the threads that read events, and may hold the lock, are there.
 */
void vb_ack_wait(struct ibv_context *context, struct vb_ack ack, uint32_t taken);

#endif
