// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A thread that polls one CQ in vain serves QPs of other CQs, where the process has few CPUs.
#define _GNU_SOURCE /* cpu_set_t */
#include "base/clock.h"
#include "net/qp/serving.h"

#include "../lib/until.h"
#include "../lib/uqp_pair.h"
#include "net/progress/engine.h"
#include "net/qp/cq_poll.h"
#include "net/qp/times.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static int cpus = AW_SPIN_CPUS_MAX; /* of this process, as the library is told */

/* Before the C library's. */
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	(void)pid;
	CPU_ZERO_S(size, set);
	for (int i = 0; i < cpus; i++)
		CPU_SET_S((size_t)i, size, set);
	return 0;
}

static _Atomic uint32_t yields;

int sched_yield(void)
{
	yields++;
	return (int)syscall(SYS_sched_yield);
}

/* The CQ that the spinning thread polls: no QP uses it. */
static struct aw_cq spare;

static int setup(void **state)
{
	assert_int_equal(aw_cq_init(&spare, 4, NULL, NULL), 0);
	return pair_setup(state);
}

/* Returns when the next stream counts them anew. */
static void cpus_become(int count)
{
	int64_t end_ns = aw_now_ns() + AW_CPUS_NS;

	cpus = count;
	until(aw_now_ns() >= end_ns);
}

static int setup_many_cpus(void **state)
{
	cpus_become(AW_SPIN_CPUS_MAX + 1);
	return setup(state);
}

static int teardown(void **state)
{
	int err = pair_teardown_stopped(state);

	aw_cq_fini(&spare);
	cpus_become(AW_SPIN_CPUS_MAX);
	return err;
}

static bool is_spun_for(struct aw_uqp *qp)
{
	aw_lock(&qp->lock);
	bool spins = qp->serving.server == AW_SERVER_SPINNER;

	aw_unlock(&qp->lock);
	return spins;
}

static void spin(void)
{
	struct aw_cq_entry entry;

	for (int i = 0; i < 2 * AW_SPIN_POLLS; i++)
		assert_int_equal(aw_cq_poll(&spare, &entry, 1), 0);
}

/* A Write of one byte more than the last, whose completion the progress thread brings. */
static void write_on(struct pair *p)
{
	p->a.buf[0]++;
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
}

static void spin_until_served(struct pair *p)
{
	uint64_t start = aw_now_ns();

	while (!is_spun_for(p->b.qp)) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		spin();
		write_on(p);
		end_wait_cqe(&p->a);
	}
}

static void spin_while_served(struct aw_uqp *qp, bool spins)
{
	uint64_t start = aw_now_ns();

	while (is_spun_for(qp)) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		if (spins)
			spin();
		else
			sched_yield();
	}
}

/* A thread that lost its CPU on the way may find that the QP was taken back meanwhile: again, then. */
static void stop_progress_behind(struct pair *p)
{
	for (;;) {
		spin_until_served(p);
		pair_stop_progress();
		if (is_spun_for(p->b.qp))
			return;
		pair_start_progress();
	}
}

static void spinners__receives_for_others(void **state)
{
	struct pair *p = *state;
	uint64_t start;

	stop_progress_behind(p);
	write_on(p);
	start = aw_now_ns();
	while (octet_at(p->b.buf) != p->a.buf[0]) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		spin();
	}
}

static void spinners__ends_with_the_spinning(void **state)
{
	struct pair *p = *state;

	spin_until_served(p);
	spin_while_served(p->b.qp, false);
	assert_int_equal(aw_serving_spinners()->qps, 0);
}

/* A QP without traffic only costs the thread that spins time. */
static void spinners__ends_where_nothing_comes(void **state)
{
	struct pair *p = *state;

	spin_until_served(p);
	spin_while_served(p->b.qp, true);
}

static void spinners__ends_with_the_qp(void **state)
{
	struct pair *p = *state;

	spin_until_served(p);
	aw_uqp_reset(p->b.qp);
	assert_false(is_spun_for(p->b.qp));
	spin();
}

static void spinners__is_for_few_cpus(void **state)
{
	struct pair *p = *state;

	for (int i = 0; i < 200; i++) {
		spin();
		write_on(p);
		end_wait_cqe(&p->a);
		assert_false(is_spun_for(p->b.qp));
	}
	assert_int_equal(aw_serving_spinners()->turns, 0);
}

/* The thread of the peer may wait for this CPU; the progress thread, while it serves the QP, needs no such help. */
static void spinners__give_their_cpu_away(void **state)
{
	struct pair *p = *state;
	struct aw_cq_entry entry;

	pair_stop_progress();
	yields = 0;
	for (uint32_t i = 0; i < 2 * AW_YIELD_POLLS; i++)
		assert_int_equal(aw_cq_poll(&p->a.cq, &entry, 1), 0);
	assert_int_equal(yields, 0);
	aw_lock(&p->a.qp->lock);
	uqp_leave_to_pollers(p->a.qp);
	aw_unlock(&p->a.qp->lock);
	for (uint32_t i = 0; i < 2 * AW_YIELD_POLLS; i++)
		assert_int_equal(aw_cq_poll(&p->a.cq, &entry, 1), 0);
	assert_int_equal(p->a.cq.over_memory, 0);
	assert_int_equal(yields, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(spinners__is_for_few_cpus, setup_many_cpus,
						teardown),
		cmocka_unit_test_setup_teardown(spinners__give_their_cpu_away, setup, teardown),
		cmocka_unit_test_setup_teardown(spinners__receives_for_others, setup, teardown),
		cmocka_unit_test_setup_teardown(spinners__ends_with_the_spinning, setup, teardown),
		cmocka_unit_test_setup_teardown(spinners__ends_where_nothing_comes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(spinners__ends_with_the_qp, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
