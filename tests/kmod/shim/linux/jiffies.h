// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A clock that a test moves, of 1000 ticks a second.
#ifndef KSHIM_JIFFIES_H
#define KSHIM_JIFFIES_H

#include <linux/types.h>

#define HZ 1000

extern unsigned long jiffies;

#define TICK_NSEC 1000000ull
#define msecs_to_jiffies(ms) ((unsigned long)(ms))
#define get_jiffies_64() ((u64)jiffies)
#define jiffies64_to_nsecs(ticks) ((u64)(ticks)*TICK_NSEC)
#define nsecs_to_jiffies(ns) ((unsigned long)((ns) / TICK_NSEC))
#define time_before(a, b) ((long)((a) - (b)) < 0)
#define time_after_eq(a, b) (!time_before(a, b))

#endif
