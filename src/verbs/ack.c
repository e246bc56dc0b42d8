// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Counts of acknowledged events. They wrap, so only their difference means something. The highest bit of a count is no part of
// it: while it is not set nobody waits, and an acknowledgement takes no lock. Nothing of the object is touched behind the step
// that makes its count whole, since the object may then be gone.
#include "verbs/ack.h"

#include "base/tsan.h"
#include "ring/lock.h"
#include "verbs/context.h"

#define AWAITED 0x80000000u

/* Of a count that a thread awaits, or will not any more. */
static void add_awaited(struct vb_ack ack, uint32_t count)
{
	aw_lock(ack.mutex);
	uint32_t now = __atomic_load_n(ack.completed, __ATOMIC_RELAXED);

	__atomic_store_n(ack.completed, AWAITED | (now + count), __ATOMIC_RELAXED);
	pthread_cond_broadcast(ack.cond);
	aw_unlock(ack.mutex);
}

void vb_ack_add(struct vb_ack ack, uint32_t count)
{
	uint32_t now = __atomic_load_n(ack.completed, __ATOMIC_RELAXED);

	aw_tsan_release(ack.completed);
	while (!(now & AWAITED))
		/* Release: pairs with the acquire in vb_ack_wait, whose caller frees what this thread has read. */
		if (__atomic_compare_exchange_n(ack.completed, &now, (now + count) & ~AWAITED, true,
						__ATOMIC_RELEASE, __ATOMIC_RELAXED))
			return;
	add_awaited(ack, count);
}

/* The shift leaves the bit out of the difference. */
void vb_ack_wait(struct ibv_context *context, struct vb_ack ack, uint32_t taken)
{
	if (vb_context_is_inherited(context))
		return;
	aw_lock(ack.mutex);
	uint32_t now = __atomic_fetch_or(ack.completed, AWAITED, __ATOMIC_ACQUIRE);

	while ((int32_t)((taken - now) << 1) > 0) {
		pthread_cond_wait(ack.cond, ack.mutex);
		now = __atomic_load_n(ack.completed, __ATOMIC_RELAXED);
	}
	aw_unlock(ack.mutex);
	aw_tsan_acquire(ack.completed);
}
