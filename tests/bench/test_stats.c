// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/stats.h"

static int create(void **state)
{
	*state = stats_create();
	return 0;
}

static int destroy(void **state)
{
	stats_destroy(*state);
	return 0;
}

static void assert_near(double found, double wanted)
{
	double error = found > wanted ? found - wanted : wanted - found;

	if (error > wanted / STATS_PARTS)
		fail_msg("%f is not near %f", found, wanted);
}

static void stats__of_nothing(void **state)
{
	assert_true(stats_quantile(*state, 0.5) == 0);
	assert_true(stats_mean(*state) == 0);
}

static void stats__of_one(void **state)
{
	stats_add(*state, 123456789);
	assert_true(stats_quantile(*state, 0) == 123456789);
	assert_true(stats_quantile(*state, 0.5) == 123456789);
	assert_true(stats_quantile(*state, 1) == 123456789);
	assert_true(stats_mean(*state) == 123456789);
}

/* Below 2 * STATS_PARTS every ns has its own bucket. */
static void stats__small_are_exact(void **state)
{
	for (uint64_t ns = 1; ns <= 100; ns++)
		stats_add(*state, ns);
	assert_true(stats_quantile(*state, 0.5) == 50);
	assert_true(stats_quantile(*state, 0.99) == 99);
	assert_true(stats_quantile(*state, 1) == 100);
	assert_true(stats_mean(*state) == 50.5);
}

/* Three equal ones between a small and a large one: the median is known at every magnitude. */
static void stats__near_at_every_magnitude(void **state)
{
	for (unsigned int bits = 3; bits < 46; bits++) {
		uint64_t ns = (1ull << bits) + (1ull << bits) / 3;

		stats_clear(*state);
		stats_add(*state, 1);
		for (int i = 0; i < 3; i++)
			stats_add(*state, ns);
		stats_add(*state, 4 * ns);
		assert_near(stats_quantile(*state, 0.5), (double)ns);
	}
}

/* The buckets of both sides of a power of two follow each other without a gap. */
static void stats__ordered(void **state)
{
	double before = 0;

	for (uint64_t ns = 1000; ns < 5000; ns++)
		stats_add(*state, ns);
	for (double part = 0; part <= 1; part += 0.001) {
		double found = stats_quantile(*state, part);

		assert_true(found >= before);
		before = found;
	}
	assert_near(stats_quantile(*state, 0.25), 2000);
	assert_near(stats_quantile(*state, 0.75), 4000);
}

static void stats__beyond_the_last_bucket(void **state)
{
	stats_add(*state, 1);
	stats_add(*state, UINT64_MAX / 4);
	stats_add(*state, UINT64_MAX / 2);
	assert_true(stats_quantile(*state, 1) == (double)(UINT64_MAX / 2));
	assert_true(stats_quantile(*state, 0.5) <= (double)(UINT64_MAX / 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(stats__of_nothing, create, destroy),
		cmocka_unit_test_setup_teardown(stats__of_one, create, destroy),
		cmocka_unit_test_setup_teardown(stats__small_are_exact, create, destroy),
		cmocka_unit_test_setup_teardown(stats__near_at_every_magnitude, create, destroy),
		cmocka_unit_test_setup_teardown(stats__ordered, create, destroy),
		cmocka_unit_test_setup_teardown(stats__beyond_the_last_bucket, create, destroy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
