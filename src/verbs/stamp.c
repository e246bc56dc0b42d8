// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The device's clock: reading it, and its difference to the wall clock's.
#include "verbs/stamp.h"

#include "base/clock.h"
#include "verbs/context.h"

#include <stdbool.h>

enum {
	LOOKS = 3 /* of which the shortest counts: a thread may lose its CPU between two clocks */
};

/*
 * A program for an adapter reads tv_nsec alone, which holds the whole count there; one for timespecs adds tv_sec. Both
 * get the time. A long of 32 bits has no room for it, so there it is divided as usual.
 */
int vb_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	const int64_t second = 1000000000;
	bool whole = sizeof(values->raw_clock.tv_nsec) >= sizeof(int64_t);
	uint32_t asked = values->comp_mask;

	(void)context;
	values->comp_mask = asked & IBV_VALUES_MASK_RAW_CLOCK;
	if (!values->comp_mask)
		return 0;
	int64_t now = aw_clock_ns(VB_STAMP_CLOCK);

	values->raw_clock.tv_sec = (time_t)(whole ? 0 : now / second);
	values->raw_clock.tv_nsec = (long)(whole ? now : now % second);
	return 0;
}

uint64_t vb_stamp_wallclock(uint64_t stamp)
{
	int64_t shortest = INT64_MAX, ahead = 0;

	for (int i = 0; i < LOOKS; i++) {
		int64_t before = aw_clock_ns(VB_STAMP_CLOCK);
		int64_t wall = aw_clock_ns(CLOCK_REALTIME);
		int64_t took = aw_clock_ns(VB_STAMP_CLOCK) - before;

		if (took >= shortest)
			continue;
		shortest = took;
		ahead = wall - before - took / 2;
	}
	return stamp + (uint64_t)ahead;
}
