// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Waiting in a test's own thread for what another thread, process or the kernel brings about. A wait of a minute fails the
// test and says what did not come.
#ifndef TESTS_LIB_UNTIL_H
#define TESTS_LIB_UNTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#define UNTIL_SECONDS 60 /* nothing takes so long but a hang */

static inline time_t until_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static inline void until_check(time_t begin, const char *condition, const char *file, int line)
{
	if (until_now() - begin <= UNTIL_SECONDS)
		return;
	/* At once: what the test leaves undone may hang its teardown. */
	fprintf(stderr, "%s:%d: waited in vain until %s\n", file, line, condition);
	_fail(file, line);
}

/* until(x); gives the CPU to others until x is true. repeat_until(x) work(); works until then. */
#define repeat_until(condition)                              \
	for (time_t until_begin = until_now(); !(condition); \
	     until_check(until_begin, #condition, __FILE__, __LINE__))
#define until(condition) repeat_until(condition) sched_yield()

#endif
