// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Threads held up at their calls, so that they meet in other orders than they usually do.
#include "base/clock.h"
#include "check/vary/vary.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>

/* In one of so many calls a thread gives its CPU away, or is held up, for at most so long. A poll is frequent, and short. */
static const struct {
	uint32_t yields, holds;
	uint64_t hold_ns_max;
} odds[AW_VARY_PLACES] = {
	[AW_VARY_POST] = { 8, 32, 50000 },    [AW_VARY_POLL] = { 16, 128, 20000 },
	[AW_VARY_ARM] = { 4, 8, 100000 },     [AW_VARY_EVENT] = { 4, 8, 100000 },
	[AW_VARY_OBJECT] = { 4, 16, 100000 }, [AW_VARY_CM] = { 4, 8, 100000 },
};

static bool is_on;
static uint64_t seed_of_all;
static _Atomic uint64_t threads;

/* Of this thread; number 0: it has no stream yet. */
static _Thread_local struct {
	uint64_t number;
	struct aw_rng rng;
} of_thread;

uint64_t aw_vary_pause_ns(struct aw_rng *rng, enum aw_vary_place place)
{
	if (aw_rng_one_in(rng, odds[place].holds))
		return AW_VARY_YIELD + 1 + aw_rng_below(rng, odds[place].hold_ns_max);
	return aw_rng_one_in(rng, odds[place].yields) ? AW_VARY_YIELD : 0;
}

void aw_vary_begin(uint64_t seed)
{
	seed_of_all = seed;
	is_on = true;
}

bool aw_vary_is_on(void)
{
	return is_on;
}

/* Relaxed: only the number matters. */
static void take_stream(void)
{
	of_thread.number = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed);
	/* Far from the numbers of CQs, which have streams of the same seed. */
	of_thread.rng = aw_rng_stream(seed_of_all, UINT64_MAX - of_thread.number);
}

void aw_vary_pause(enum aw_vary_place place)
{
	if (!is_on)
		return;
	if (of_thread.number == 0)
		take_stream();
	int keep = errno;
	uint64_t pause_ns = aw_vary_pause_ns(&of_thread.rng, place);

	if (pause_ns > 0) {
		int64_t until_ns = aw_now_ns() + (int64_t)pause_ns;

		do {
			sched_yield();
		} while (aw_now_ns() < until_ns);
	}
	errno = keep;
}
