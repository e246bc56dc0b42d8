// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/array.h"
#include "check/faults/plan.h"
#include "check/faults/units.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define OCCASIONS 12

/* 'x' for each occasion at which the fault occurs; occasion i is at i ms. */
static void decisions(const struct aw_fault_when *when, uint64_t seed, char text[OCCASIONS + 1])
{
	struct aw_fault_count count = { 0 };
	uint64_t n;

	for (uint64_t i = 0; i < OCCASIONS; i++)
		text[i] = aw_fault_decide(when, &count, seed, 0, i * 1000000, &n) ? 'x' : '.';
	text[OCCASIONS] = '\0';
}

static void decide__by_count_and_time(void **state)
{
	static const struct {
		struct aw_fault_when when;
		const char *expected;
	} rows[] = {
		{ { 0 }, "xxxxxxxxxxxx" },
		{ { .nth = 3 }, "..x........." },
		{ { .from = 3 }, "..xxxxxxxxxx" },
		{ { .from = 3, .times = 2 }, "..xx........" },
		{ { .times = 1 }, "x..........." },
		{ { .every = 4 }, "...x...x...x" },
		{ { .every = 4, .from = 2 }, ".x...x...x.." },
		{ { .every = 4, .times = 2 }, "...x...x...." },
		{ { .after_ns = 5000000 }, ".....xxxxxxx" },
		{ { .after_ns = 5000000, .nth = 2 }, "......x....." },
		{ { .after_ns = 5000001, .times = 1 }, "......x....." },
		{ { .probability = AW_FAULT_CERTAIN }, "xxxxxxxxxxxx" },
		{ { .nth = 13 }, "............" },
	};
	char text[OCCASIONS + 1];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		decisions(&rows[i].when, 1, text);
		if (strcmp(text, rows[i].expected) != 0)
			fail_msg("row %zu: %s", i, text);
	}
}

static void decide__numbers_the_occasion(void **state)
{
	const struct aw_fault_when when = { .every = 2 };
	struct aw_fault_count count = { 0 };
	uint64_t n = 0;

	(void)state;
	assert_false(aw_fault_decide(&when, &count, 1, 0, 0, &n));
	assert_int_equal(n, 0);
	assert_true(aw_fault_decide(&when, &count, 1, 0, 0, &n));
	assert_int_equal(n, 2);
}

/* A seed replays; another one, and another fault of the plan, decide otherwise. */
static void decide__by_probability(void **state)
{
	const struct aw_fault_when when = { .probability = AW_FAULT_CERTAIN / 2 };
	struct aw_fault_count count[3] = { 0 };
	char first[OCCASIONS + 1], again[OCCASIONS + 1], other[OCCASIONS + 1];
	unsigned hits = 0, same = 0;
	uint64_t n;

	(void)state;
	decisions(&when, 7, first);
	decisions(&when, 7, again);
	decisions(&when, 8, other);
	assert_string_equal(first, again);
	assert_string_not_equal(first, other);
	for (int i = 0; i < 10000; i++) {
		bool a = aw_fault_decide(&when, &count[0], 1, 0, 0, &n);
		bool b = aw_fault_decide(&when, &count[1], 1, 1, 0, &n);

		hits += a;
		same += a == b;
	}
	assert_in_range(hits, 4800, 5200);
	assert_in_range(same, 4800, 5200);
}

static void decide__a_rare_one(void **state)
{
	const struct aw_fault_when when = { .probability = AW_FAULT_CERTAIN / 1000 };
	struct aw_fault_count count = { 0 };
	unsigned hits = 0;
	uint64_t n;

	(void)state;
	for (int i = 0; i < 100000; i++)
		hits += aw_fault_decide(&when, &count, 3, 0, 0, &n);
	assert_in_range(hits, 60, 140);
}

struct crowd {
	struct aw_fault_when when;
	struct aw_fault_count count;
	_Atomic unsigned hits;
};

static void *ask(void *arg)
{
	struct crowd *crowd = arg;
	uint64_t n;

	for (int i = 0; i < 10000; i++)
		if (aw_fault_decide(&crowd->when, &crowd->count, 1, 0, 0, &n))
			atomic_fetch_add(&crowd->hits, 1);
	return NULL;
}

/* Threads that count together get each number once. */
static void decide__from_threads(void **state)
{
	struct crowd crowd = { .when = { .from = 20000, .times = 5 } };
	pthread_t threads[4];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask, &crowd), 0);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(crowd.hits, 5);
	assert_int_equal(crowd.count.occasions, 40000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decide__by_count_and_time),
		cmocka_unit_test(decide__numbers_the_occasion),
		cmocka_unit_test(decide__by_probability),
		cmocka_unit_test(decide__a_rare_one),
		cmocka_unit_test(decide__from_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
