// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Acknowledging events. A thread that destroys an object waits until every event of it that was
// read has been acknowledged, so that no reader still looks at it (man ibv_get_async_event, NOTES).
#ifndef VERBS_ACK_H
#define VERBS_ACK_H

#include "base/thread_safety.h"

#include <stdint.h>

/* The lock, condition and count that verbs.h puts into the object. */
struct vb_ack {
	aw_mutex *mutex;
	pthread_cond_t *cond;
	uint32_t *completed;
};

void vb_ack_add(struct vb_ack ack, uint32_t count);

/* Returns when at least `taken` events were acknowledged. */
void vb_ack_wait(struct vb_ack ack, uint32_t taken);

#endif
