// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The clock of a sender in the bandwidth test: read only now and then, so that small messages are not
// measured by what it costs.
#ifndef BENCH_PACE_H
#define BENCH_PACE_H

#include "worker/clock.h"

#include <stdbool.h>

#define PACE_CALLS 16
#define PACE_OCTETS (256u << 10)

struct pace {
	uint64_t deadline_ns;
	uint64_t octets;
	unsigned int calls;
	bool over;
};

/*
 * Whether the phase is over; octets: how many go out before the next question. The first call never says so: a phase
 * has a message, though its thread may have started behind the deadline.
 */
static inline bool pace_over(struct pace *pace, uint64_t octets)
{
	bool first = pace->calls == 0;

	if (pace->calls++ % PACE_CALLS == 0 || pace->octets >= PACE_OCTETS) {
		pace->octets = 0;
		pace->over = !first && clock_ns() >= pace->deadline_ns;
	}
	pace->octets += octets;
	return pace->over;
}

#endif
