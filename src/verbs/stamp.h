// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The device's clock, by which completions are stamped and which ibv_query_rt_values_ex(3) reads: the host's
// CLOCK_MONOTONIC_RAW in nanoseconds. As an adapter's, it runs freely: nobody sets it and NTP does not bend it, so that
// the difference of two stamps is the time between two completions. Unlike an adapter's it is the same for all programs of a host.
#ifndef VERBS_STAMP_H
#define VERBS_STAMP_H

#include <stdint.h>
#include <time.h>

#define VB_STAMP_CLOCK CLOCK_MONOTONIC_RAW
#define VB_STAMP_KHZ 1000000 /* a unit is a nanosecond */
#define VB_STAMP_MASK UINT64_MAX /* of the bits that a stamp has */

/* The time of CLOCK_REALTIME at the stamp, as the two clocks stand to each other now. */
uint64_t vb_stamp_wallclock(uint64_t stamp);

#endif
