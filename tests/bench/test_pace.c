// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How long a phase of the bandwidth test lasts.
#include "worker/pace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void pace_over__not_before_the_first_message(void **state)
{
	struct pace pace = { .deadline_ns = 1 };

	(void)state;
	assert_false(pace_over(&pace, 0));
	for (unsigned int i = 1; i < PACE_CALLS; i++)
		assert_false(pace_over(&pace, 0));
	assert_true(pace_over(&pace, 0));
}

static void pace_over__after_many_octets(void **state)
{
	struct pace pace = { .deadline_ns = 1 };

	(void)state;
	assert_false(pace_over(&pace, PACE_BYTES));
	assert_true(pace_over(&pace, 1));
}

static void pace_over__not_before_the_deadline(void **state)
{
	struct pace pace = { .deadline_ns = UINT64_MAX };

	(void)state;
	for (unsigned int i = 0; i < 3 * PACE_CALLS; i++)
		assert_false(pace_over(&pace, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pace_over__not_before_the_first_message),
		cmocka_unit_test(pace_over__after_many_octets),
		cmocka_unit_test(pace_over__not_before_the_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
