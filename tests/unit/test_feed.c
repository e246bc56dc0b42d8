// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A CQ whose pollers serve the QPs of others, which feed it.
#include "net/cq/feed.h"

#include "../lib/uqp_pair.h"
#include "base/clock.h"
#include "net/qp/cq_poll.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum {
	FEEDS = 9,
};

/* The CQ that a test polls: it has no QP of its own. */
static struct aw_cq fed;

static int setup(void **state)
{
	return pair_setup(state) || aw_cq_init(&fed, 4, NULL, NULL);
}

static int teardown(void **state)
{
	aw_cq_fini(&fed);
	return pair_teardown(state);
}

static int teardown_stopped(void **state)
{
	pair_start_progress();
	return teardown(state);
}

static void poll_fed(int times)
{
	struct aw_cq_entry entry;

	for (int i = 0; i < times; i++)
		assert_int_equal(aw_cq_poll(&fed, &entry, 1), 0);
}

/* Sends a Write whose octet differs from the last one. */
static void write_octet(struct pair *p)
{
	p->a.buf[0] = (uint8_t)(octet_at(p->b.buf) + 1);
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
}

static bool is_written(struct pair *p)
{
	return octet_at(p->b.buf) == p->a.buf[0];
}

static void until_written(struct pair *p)
{
	uint64_t start = aw_now_ns();

	while (!is_written(p)) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		sched_yield();
	}
}

static void join_feed__its_qps_are_served(void **state)
{
	struct pair *p = *state;

	pair_stop_progress();
	assert_int_equal(aw_cq_join_feed(&fed, &p->b.cq), 0);
	write_octet(p);
	poll_fed(1);
	assert_true(is_written(p));
	aw_cq_leave_feed(&fed, &p->b.cq);
	write_octet(p);
	poll_fed(100);
	assert_false(is_written(p));
	uqp_poll(p->b.qp);
	assert_true(is_written(p));
}

static void leave_feed__as_often_as_it_joined(void **state)
{
	struct aw_cq feeds[FEEDS];
	struct pair *p = *state;

	pair_stop_progress();
	for (int i = 0; i < FEEDS; i++) {
		assert_int_equal(aw_cq_init(&feeds[i], 1, NULL, NULL), 0);
		assert_int_equal(aw_cq_join_feed(&fed, &feeds[i]), 0);
		assert_int_equal(aw_cq_join_feed(&fed, &p->b.cq), 0);
	}
	for (int i = FEEDS - 1; i >= 0; i--) {
		aw_cq_leave_feed(&fed, &feeds[i]);
		write_octet(p);
		poll_fed(1);
		assert_true(is_written(p));
		aw_cq_leave_feed(&fed, &p->b.cq);
		aw_cq_fini(&feeds[i]);
	}
	write_octet(p);
	poll_fed(1);
	assert_false(is_written(p));
}

static void arm__takes_back_what_pollers_serve(void **state)
{
	struct pair *p = *state;

	pair_stop_progress();
	assert_int_equal(aw_cq_join_feed(&fed, &p->b.cq), 0);
	uqp_leave_to_pollers(p->b.qp);
	assert_true(uqp_is_away(p->b.qp, NULL));
	aw_cq_arm(&fed, AW_ARM_NEXT);
	assert_false(uqp_is_away(p->b.qp, NULL));
	aw_cq_leave_feed(&fed, &p->b.cq);
}

/* A thread that has polled, arms the CQ and sleeps is no poller, whatever number of polls came before. */
static void arm__ends_what_polls_have_shown(void **state)
{
	struct pair *p = *state;

	assert_int_equal(aw_cq_join_feed(&fed, &p->b.cq), 0);
	for (int i = 0; i < 100; i++) {
		poll_fed(50);
		aw_cq_arm(&fed, AW_ARM_NEXT);
		write_octet(p);
		until_written(p);
		assert_false(uqp_is_away(p->b.qp, NULL));
		end_wait_cqe(&p->a);
	}
	aw_cq_leave_feed(&fed, &p->b.cq);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(join_feed__its_qps_are_served, setup,
						teardown_stopped),
		cmocka_unit_test_setup_teardown(leave_feed__as_often_as_it_joined, setup,
						teardown_stopped),
		cmocka_unit_test_setup_teardown(arm__takes_back_what_pollers_serve, setup,
						teardown_stopped),
		cmocka_unit_test_setup_teardown(arm__ends_what_polls_have_shown, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
