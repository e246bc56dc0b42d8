// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Counts of acknowledged events. They wrap, so only their difference means something.
#include "verbs/ack.h"

#include "ring/lock.h"

void vb_ack_add(struct vb_ack ack, uint32_t count)
{
	aw_lock(ack.mutex);
	*ack.completed += count;
	pthread_cond_broadcast(ack.cond);
	aw_unlock(ack.mutex);
}

void vb_ack_wait(struct vb_ack ack, uint32_t taken)
{
	aw_lock(ack.mutex);
	while ((int32_t)(taken - *ack.completed) > 0)
		pthread_cond_wait(ack.cond, ack.mutex);
	aw_unlock(ack.mutex);
}
