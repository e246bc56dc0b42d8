// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A fork, and a hold, wait for a progress thread that is still on its way: who made it may hold locks.
#include "net/progress/engine.h"

#include "../lib/late_thread.h"

static int setup(void **state)
{
	(void)state;
	sem_init(&go, 0, 0);
	return aw_engine_get();
}

static int teardown(void **state)
{
	(void)state;
	aw_engine_put();
	return 0;
}

static void engine_fork__waits_for_the_start(void **state)
{
	(void)state;
	expect_fork_to_wait();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(engine_fork__waits_for_the_start, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
