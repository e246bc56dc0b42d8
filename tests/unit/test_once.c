// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What is set up once, whoever comes first, and again where it failed.
#include "ring/once.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>

#define THREADS 8

static unsigned int calls;
static int answer;

static int init(void)
{
	calls++;
	return answer;
}

static void once__runs_once(void **state)
{
	struct aw_once once = AW_ONCE_INIT;

	(void)state;
	calls = 0;
	answer = 0;
	assert_int_equal(aw_once_run(&once, init), 0);
	assert_int_equal(aw_once_run(&once, init), 0);
	assert_int_equal(calls, 1);
}

static void once__tries_again_what_failed(void **state)
{
	struct aw_once once = AW_ONCE_INIT;

	(void)state;
	calls = 0;
	answer = ENOMEM;
	assert_int_equal(aw_once_run(&once, init), ENOMEM);
	assert_int_equal(aw_once_run(&once, init), ENOMEM);
	answer = 0;
	assert_int_equal(aw_once_run(&once, init), 0);
	assert_int_equal(calls, 3);
}

static void *run(void *arg)
{
	return aw_once_run(arg, init) ? arg : NULL;
}

static void once__runs_once_for_many_threads(void **state)
{
	struct aw_once once = AW_ONCE_INIT;
	pthread_t thread[THREADS];

	(void)state;
	calls = 0;
	answer = 0;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, run, &once), 0);
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		assert_int_equal(pthread_join(thread[i], &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(once__runs_once),
		cmocka_unit_test(once__tries_again_what_failed),
		cmocka_unit_test(once__runs_once_for_many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
