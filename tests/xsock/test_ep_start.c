// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A fork waits for the thread of what lingers while that is still on its way: who makes it may hold locks.
#include "../lib/late_thread.h"
#include "ends.h"

static void ep_fork__waits_for_the_start(void **state)
{
	struct ends ends;

	(void)state;
	sem_init(&go, 0, 0);
	ends_open(&ends, NULL);
	assert_false(on_its_way);
	aw_xs_ep_close(ends.client, false);
	ends.client = NULL;
	expect_fork_to_wait();
	ends_wait(ends.server, POLLIN);
	ends_expect(ends.server, 0);
	ends_close(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ep_fork__waits_for_the_start),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
