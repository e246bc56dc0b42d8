// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program that waits for a channel's fd by poll(2) or epoll, without blocking in ibv_get_cq_event: arrivals wake it alone.
#include "net/qp/channel_wait.h"

#include "../lib/uqp_pair.h"
#include "base/clock.h"
#include "net/progress/engine.h"
#include "net/qp/cq_poll.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct aw_channel ch;

static int setup(void **state)
{
	int err = pair_setup(state);
	struct pair *p = *state;

	assert_int_equal(aw_channel_init_for_qps(&ch), 0);
	end_set_channel(&p->b, &ch);
	assert_int_equal(fcntl(ch.fd, F_SETFL, O_NONBLOCK), 0);
	return err;
}

static int teardown(void **state)
{
	int err = pair_teardown_stopped(state);

	aw_channel_fini(&ch);
	return err;
}

static int take(void)
{
	void *object;
	int kind;

	return aw_channel_await(&ch, &object, &kind);
}

static void await_readable(void)
{
	struct pollfd pollfd = { .fd = ch.fd, .events = POLLIN };

	assert_int_equal(poll(&pollfd, 1, (int)(UQP_PAIR_WAIT_NS / 1000000)), 1);
	assert_int_equal(pollfd.revents, POLLIN);
}

static void ask(struct pair *p)
{
	struct aw_sge sge = end_sge(&p->b, 0, 16);

	assert_int_equal(aw_uqp_recv(p->b.qp, 1, &sge, 1), 0);
	aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
	end_post(&p->a, AW_OP_SEND, &p->b, 4);
}

/* One turn of the program's loop: it waits for the fd, and takes all that there is. */
static void serve_one(struct pair *p)
{
	struct aw_cq_entry entry;
	int err;

	do {
		await_readable();
		err = take();
	} while (err == EAGAIN);
	assert_int_equal(err, 0);
	assert_int_equal(aw_cq_poll(&p->b.cq, &entry, 1), 1);
}

static void talk(struct pair *p)
{
	ask(p);
	serve_one(p);
	end_wait_cqe(&p->a);
}

static void talk_until_lent(struct pair *p)
{
	uint64_t start = aw_now_ns();

	while (!uqp_is_lent(p->b.qp, &ch)) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		talk(p);
	}
}

/* A thread that lost its CPU on the way may find that the QP was taken back meanwhile: again, then. */
static void stop_progress_of_lent(struct pair *p)
{
	for (;;) {
		talk_until_lent(p);
		pair_stop_progress();
		if (uqp_is_lent(p->b.qp, &ch))
			return;
		pair_start_progress();
	}
}

static void channel_poll__wakes_without_the_progress_thread(void **state)
{
	struct pair *p = *state;

	stop_progress_of_lent(p);
	for (int i = 0; i < 10; i++) {
		ask(p);
		await_readable();
		assert_int_equal(take(), 0);
		struct aw_cq_entry entry = end_wait_cqe(&p->b);

		assert_int_equal(entry.queue, AW_RQ);
		assert_int_equal(take(), EAGAIN);
	}
}

static void channel_poll__comes_back_from_a_program_that_stays_away(void **state)
{
	struct pair *p = *state;

	talk_until_lent(p);
	uqp_wait_taken_back(p->b.qp, &ch);
	talk(p);
}

/* A Write raises no event: a program that is woken for it is left alone from then on. */
static void channel_poll__comes_back_when_woken_in_vain(void **state)
{
	struct pair *p = *state;

	stop_progress_of_lent(p);
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	await_readable();
	assert_int_equal(take(), EAGAIN);
	pair_start_progress();
	uqp_wait_taken_back(p->b.qp, &ch);
	for (int i = 0; i < 20; i++) {
		talk(p);
		assert_false(uqp_is_lent(p->b.qp, &ch));
		end_post(&p->a, AW_OP_WRITE, &p->b, 1);
		end_wait_cqe(&p->a);
	}
}

/* Whoever polls the fd and then blocks in ibv_get_cq_event must find an event there. */
static void channel_poll__not_where_the_fd_blocks(void **state)
{
	struct pair *p = *state;

	assert_int_equal(fcntl(ch.fd, F_SETFL, 0), 0);
	for (int i = 0; i < 2 * AW_CHANNEL_EVENTS_MIN; i++) {
		talk(p);
		assert_false(uqp_is_lent(p->b.qp, &ch));
	}
}

/* A program that takes an event now and then is woken for events alone, as by an adapter. */
static void channel_poll__not_for_few_events(void **state)
{
	struct pair *p = *state;

	for (int i = 0; i < AW_CHANNEL_EVENTS_MIN - 1; i++) {
		talk(p);
		assert_false(uqp_is_lent(p->b.qp, &ch));
	}
	talk_until_lent(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(channel_poll__wakes_without_the_progress_thread,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			channel_poll__comes_back_from_a_program_that_stays_away, setup, teardown),
		cmocka_unit_test_setup_teardown(channel_poll__comes_back_when_woken_in_vain, setup,
						teardown),
		cmocka_unit_test_setup_teardown(channel_poll__not_where_the_fd_blocks, setup,
						teardown),
		cmocka_unit_test_setup_teardown(channel_poll__not_for_few_events, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
