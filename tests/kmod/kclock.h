// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How a test moves what waits: work that was queued, timers, and the clock itself (jiffies).
#ifndef KMOD_TEST_KCLOCK_H
#define KMOD_TEST_KCLOCK_H

#include <stdbool.h>

/* Items that wait; and runs the nth of them, from 0, or one behind it. False: none that does not run already. */
unsigned int kshim_work_count(void);
bool kshim_work_run(unsigned int nth);

/* Runs one timer that is due; false: none is. And when the next one is; false: no timer waits. */
bool kshim_timer_run(void);
bool kshim_timer_next(unsigned long *expires);

#endif
