// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/clock.h"

#define NS INT64_C(1000000000)

int64_t aw_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * NS + now.tv_nsec;
}

int64_t aw_now_ns(void)
{
	return aw_clock_ns(CLOCK_MONOTONIC);
}

struct timespec aw_clock_after(clockid_t clock, int64_t ns)
{
	int64_t end = aw_clock_ns(clock) + ns;

	return (struct timespec){ .tv_sec = (time_t)(end / NS), .tv_nsec = (long)(end % NS) };
}
