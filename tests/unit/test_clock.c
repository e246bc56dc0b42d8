// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The clocks' times, with a clock of the test's own.
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct timespec time_now;
static clockid_t asked;

int clock_gettime(clockid_t clock, struct timespec *now)
{
	asked = clock;
	*now = time_now;
	return 0;
}

static void now__is_the_monotonic_clock(void **state)
{
	(void)state;
	time_now = (struct timespec){ .tv_sec = 5, .tv_nsec = 999999999 };
	assert_int_equal(aw_now_ns(), 5999999999);
	assert_int_equal(asked, CLOCK_MONOTONIC);
	assert_int_equal(aw_clock_ns(CLOCK_REALTIME), 5999999999);
	assert_int_equal(asked, CLOCK_REALTIME);
}

static void after__carries_into_seconds(void **state)
{
	struct timespec end;

	(void)state;
	time_now = (struct timespec){ .tv_sec = 5, .tv_nsec = 999999999 };
	end = aw_clock_after(CLOCK_REALTIME, 0);
	assert_int_equal(end.tv_sec, 5);
	assert_int_equal(end.tv_nsec, 999999999);
	end = aw_clock_after(CLOCK_REALTIME, 1);
	assert_int_equal(end.tv_sec, 6);
	assert_int_equal(end.tv_nsec, 0);
	end = aw_clock_after(CLOCK_REALTIME, 30000000002);
	assert_int_equal(end.tv_sec, 36);
	assert_int_equal(end.tv_nsec, 1);
	assert_int_equal(asked, CLOCK_REALTIME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(now__is_the_monotonic_clock),
		cmocka_unit_test(after__carries_into_seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
