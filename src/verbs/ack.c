// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Counts of acknowledged events. They wrap, so only their difference means something.
#include "verbs/ack.h"

void vb_ack_add(struct vb_ack ack, uint32_t count)
{
	pthread_mutex_lock(ack.mutex);
	*ack.completed += count;
	pthread_cond_broadcast(ack.cond);
	pthread_mutex_unlock(ack.mutex);
}

void vb_ack_wait(struct vb_ack ack, uint32_t taken)
{
	pthread_mutex_lock(ack.mutex);
	while ((int32_t)(taken - *ack.completed) > 0)
		pthread_cond_wait(ack.cond, ack.mutex);
	pthread_mutex_unlock(ack.mutex);
}
