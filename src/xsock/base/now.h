// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The time of CLOCK_MONOTONIC, in nanoseconds.
#ifndef XSOCK_BASE_NOW_H
#define XSOCK_BASE_NOW_H

#include <stdint.h>
#include <time.h>

static inline int64_t aw_xs_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
