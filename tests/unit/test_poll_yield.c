// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A poll that finds nothing gives its CPU away now and then. What came meanwhile it tells.
#include "../lib/host_scene.h"
#include "net/qp/cq_poll.h"

#include <sys/syscall.h>

static struct scene
	*sends_meanwhile; /* one Send of 1000 octets, while the thread has given its CPU away */

int sched_yield(void)
{
	struct scene *s = sends_meanwhile;

	sends_meanwhile = NULL;
	if (s)
		put_quietly(s, 1000, SIZE_MAX);
	return (int)syscall(SYS_sched_yield);
}

/* A poll that gave the CPU away tells what came meanwhile. */
static void poll_yield__a_send_while_a_poll_waits_for_the_cpu(void **state)
{
	struct scene *s = *state;
	struct aw_cq_entry entry;
	int n;

	join(s);
	pair_stop_progress();
	post_recv(s, 1000);
	sends_meanwhile = s;
	do
		n = aw_cq_poll(&s->e.cq, &entry, 1);
	while (sends_meanwhile);
	assert_int_equal(n, 1);
	assert_int_equal(entry.cqe.byte_len, 1000);
	pair_start_progress();
	part(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(poll_yield__a_send_while_a_poll_waits_for_the_cpu,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
