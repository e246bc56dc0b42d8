// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kernel's clocks, in nanoseconds.
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* The time of CLOCK_MONOTONIC. */
int64_t aw_now_ns(void);

/* The time of any clock. */
int64_t aw_clock_ns(clockid_t clock);

/* The time of the clock in ns nanoseconds, for calls that wait until a time. */
struct timespec aw_clock_after(clockid_t clock, int64_t ns);

#endif
