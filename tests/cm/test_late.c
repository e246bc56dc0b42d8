// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program that accepts long after the time in which a start-up has to be over, here shortened: two anywarp ends wait for each
// other (docs/extensions.md, "Waits").
#include "cm.h"

#include "../lib/until.h"

#include <time.h>

#define SHORT_MS 1000 /* what is to come before it is over comes on a busy machine as well */
#define WAIT_MS 100
#define LATE_MS (3 * SHORT_MS)

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void requested(struct cm_ends *ends)
{
	cm_set_startup_ms(SHORT_MS);
	cm_set_wait_ms(WAIT_MS);
	cm_ends_open(ends, "127.0.0.1");
	cm_ends_request(ends);
}

static void accept__late(void **state)
{
	struct cm_ends ends;

	(void)state;
	requested(&ends);
	int64_t late = now_ms() + LATE_MS;

	until(now_ms() >= late);
	cm_expect_none(ends.active);
	cm_ends_accept(&ends);
	cm_ends_disconnect(&ends);
	cm_ends_close(&ends);
}

static void reject__late(void **state)
{
	struct rdma_cm_event *event;
	struct cm_ends ends;

	(void)state;
	requested(&ends);
	int64_t late = now_ms() + LATE_MS;

	until(now_ms() >= late);
	cm_expect_none(ends.active);
	assert_int_equal(rdma_reject(ends.server, "no", 2), 0);
	assert_int_equal(rdma_get_cm_event(ends.active, &event), 0);
	assert_int_equal(event->event, RDMA_CM_EVENT_REJECTED);
	assert_int_equal(event->param.conn.private_data_len, 2);
	assert_memory_equal(event->param.conn.private_data, "no", 2);
	assert_int_equal(rdma_ack_cm_event(event), 0);
	cm_ends_close(&ends);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, cm_reset_bounds, cm_reset_bounds)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(accept__late),
		WITH(reject__late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
