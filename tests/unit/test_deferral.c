// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An acknowledgement that waits for a post leaves, whichever threads serve its QP then.
#include "net/qp/deferral.h"

#include "../lib/uqp_pair.h"
#include "base/clock.h"
#include "net/progress/engine.h"
#include "net/qp/cq_poll.h"
#include "net/qp/uqp_progress.h"
#include "net/qp/uqp_sock.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Linked in by the thread sanitizer, which cannot follow threads that a forked child starts. */
extern void __tsan_init(void) __attribute__((weak));

/* The roce persona's completions, of an end that has posted nothing. */
static void set_acks(struct end *e)
{
	aw_lock(&e->qp->lock);
	e->qp->core.acks = true;
	aw_unlock(&e->qp->lock);
}

/* A thread polls e, as far as the progress thread, which is stopped, knows; and its answers come at once. */
static void poll_for(struct end *e)
{
	aw_lock(&e->qp->lock);
	uqp_leave_to_pollers(e->qp);
	e->qp->deferral.ack.credits = AW_CREDIT_MAX;
	aw_unlock(&e->qp->lock);
}

static bool waits(struct end *e)
{
	aw_lock(&e->qp->lock);
	bool waits = e->qp->deferral.ack.waits;

	aw_unlock(&e->qp->lock);
	return waits;
}

static bool poll_until_it_waits(struct end *e)
{
	uint64_t start = aw_now_ns();
	struct aw_cq_entry entry;

	while (!waits(e)) {
		if (aw_now_ns() - start >= UQP_PAIR_WAIT_NS || aw_cq_poll(&e->cq, &entry, 1) != 0)
			return false;
	}
	return true;
}

/* What a posted b has, and acknowledges with its next post. */
static void make_wait(struct pair *p)
{
	pair_stop_progress();
	set_acks(&p->a);
	set_acks(&p->b);
	poll_for(&p->b);
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	assert_true(poll_until_it_waits(&p->b));
}

/* Though b's program calls nothing any more. */
static void expect_acknowledged(struct pair *p)
{
	pair_start_progress();
	assert_int_equal(end_wait_cqe(&p->a).cqe.status, AW_WC_SUCCESS);
	assert_int_equal(p->b.cq.acks_waiting, 0);
}

/* One thread armed before the acknowledgement began to wait, and looks for QPs that pollers have only now. */
static void ack__leaves_where_the_recall_comes_late(void **state)
{
	struct pair *p = *state;

	make_wait(p);
	aw_uqp_take_back(&p->b.cq);
	expect_acknowledged(p);
}

/* To the child of a fork the stream is nothing. */
static void ack__ends_in_a_child(void **state)
{
	struct pair *p = *state;

	make_wait(p);
	aw_serving_fork_prepare();
	aw_serving_fork_child();
	assert_false(waits(&p->b));
	assert_false(aw_deferral_any_ack());
}

/* Here the CQ of others is armed while somebody serves their QPs. */
static void ack__is_nothing_to_other_cqs(void **state)
{
	struct pair *p = *state;

	make_wait(p);
	assert_int_equal(p->b.cq.acks_waiting, 1);
	/* Arming waits for no lock that this thread has. */
	aw_lock(&p->a.cq.qps_lock);
	aw_cq_arm(&p->a.cq, AW_ARM_NEXT);
	aw_unlock(&p->a.cq.qps_lock);
	assert_true(waits(&p->b));
	aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
	assert_false(waits(&p->b));
	expect_acknowledged(p);
}

/* A process of its own, that ends while its acknowledgement waits. It writes when it is ready. */
static void wait_and_exit(int lfd, int told)
{
	struct aw_stream s = { .crc = true, .ird = 1, .ord = 1 };
	int fd = socket(AF_INET, SOCK_STREAM, 0), pd;
	struct sockaddr_in addr;
	socklen_t len = sizeof(addr);
	struct end e;

	getsockname(lfd, (struct sockaddr *)&addr, &len);
	if (connect(fd, (struct sockaddr *)&addr, len) != 0 || aw_engine_get() != 0)
		_exit(1);
	end_make(&e, &pd, NULL);
	pair_stop_progress();
	if (aw_uqp_attach(e.qp, fd, &s) != 0)
		_exit(1);
	set_acks(&e);
	poll_for(&e);
	if (write(told, "", 1) != 1 || !poll_until_it_waits(&e))
		_exit(1);
	exit(0);
}

static int listen_somewhere(void)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int lfd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(lfd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(lfd, 1), 0);
	return lfd;
}

static void post_nothing(struct end *e)
{
	aw_uqp_send_begin(e->qp);
	*aw_uqp_send_slot(e->qp) = (struct aw_swqe){ .op = AW_OP_WRITE, .flags = AW_WR_SIGNALED };
	aw_uqp_send_commit(e->qp);
	aw_uqp_send_end(e->qp);
}

static void ack__leaves_at_exit(void **state)
{
	struct aw_stream s = { .initiator = true, .crc = true, .ird = 1, .ord = 1 };
	int lfd = listen_somewhere(), told[2], status, pd;
	struct end e = { .events = 0 };
	pid_t child;
	char byte;

	(void)state;
	if (__tsan_init)
		skip();
	assert_int_equal(pipe(told), 0);
	child = fork();
	if (child == 0)
		wait_and_exit(lfd, told[1]);
	close(told[1]);
	assert_int_equal(aw_engine_get(), 0);
	end_make(&e, &pd, NULL);
	assert_int_equal(aw_uqp_attach(e.qp, accept(lfd, NULL, NULL), &s), 0);
	set_acks(&e);
	assert_int_equal(read(told[0], &byte, 1), 1);
	post_nothing(&e);
	assert_int_equal(end_wait_cqe(&e).cqe.status, AW_WC_SUCCESS);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	end_destroy(&e);
	aw_engine_put();
	close(told[0]);
	close(lfd);
}

int main(void)
{
#define DEFERRAL_TEST(test) cmocka_unit_test_setup_teardown(test, pair_setup, pair_teardown_stopped)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ack__leaves_at_exit),
		DEFERRAL_TEST(ack__leaves_where_the_recall_comes_late),
		DEFERRAL_TEST(ack__ends_in_a_child),
		DEFERRAL_TEST(ack__is_nothing_to_other_cqs),
	};

	return cmocka_run_group_tests_name("deferral", tests, NULL, NULL);
}
