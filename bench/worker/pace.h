// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The clock of a sender in the bandwidth test: read only now and then, so that small messages are not
// measured by what it costs.
#ifndef BENCH_PACE_H
#define BENCH_PACE_H

#include "worker/clock.h"

#include <stdbool.h>

#define PACE_CALLS 16
#define PACE_BYTES (256u << 10)

struct pace {
	uint64_t deadline_ns;
	uint64_t bytes;
	unsigned int calls;
	bool over;
};

/*
 * Returns whether the phase is over; bytes: how many go out before the next call. The first call returns false:
 * each phase has a message, although its thread may start after the deadline.
 */
static inline bool pace_over(struct pace *pace, uint64_t bytes)
{
	bool first = pace->calls == 0;

	if (pace->calls++ % PACE_CALLS == 0 || pace->bytes >= PACE_BYTES) {
		pace->bytes = 0;
		pace->over = !first && clock_ns() >= pace->deadline_ns;
	}
	pace->bytes += bytes;
	return pace->over;
}

#endif
