// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The progress thread's view of the threads that serve QPs in its place (net/qp/serve.h): the pollers of a CQ, the
// waiters of a channel, the threads that spin on other CQs.
#ifndef NET_ACTIVITY_H
#define NET_ACTIVITY_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/queue.h>

/* Embedded in CQs and channels; zero at first. */
struct aw_activity {
	/*
	 * Grows as these threads serve: with each empty poll, each QP that a poll found ready,
	 * each wake.
	 */
	_Atomic uint32_t turns;
	/* Grows as these threads take what serving gave: with each poll that returned receives. */
	_Atomic uint32_t takes;
	/* guarded by net/qp/serving.c's lock */
	TAILQ_ENTRY(aw_activity) entry; /* while these threads serve QPs */
	uint32_t qps; /* that they serve; a QP that uses the CQ for both queues counts twice */
	uint32_t looked_at; /* of these, those that are looked at once these threads do nothing */
	uint32_t watched; /* of those, the ones of watchers */
	uint32_t active_seen; /* turns and takes at the last tick */
	uint32_t turns_seen; /* turns at the last tick */
	uint32_t idle_ticks; /* since turns or takes grew */
	uint32_t
		unserved_ticks; /* since turns grew: the CQ may never be empty, and so no QP be served */
};

/* Of two threads that count at once one may not be counted: what is asked is whether the number has changed. */
static inline void aw_activity_count(_Atomic uint32_t *number, uint32_t more)
{
	uint32_t now = atomic_load_explicit(number, memory_order_relaxed);

	atomic_store_explicit(number, now + more, memory_order_relaxed);
}

static inline uint32_t aw_activity_turns(const struct aw_activity *activity)
{
	return atomic_load_explicit(&activity->turns, memory_order_relaxed);
}

#endif
