// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program that polls the fd of its channel, and the pair whose end b has its CQ there.
#ifndef TESTS_LIB_POLLED_CHANNEL_H
#define TESTS_LIB_POLLED_CHANNEL_H

#include "base/clock.h"
#include "net/qp/channel_wait.h"
#include "net/qp/cq_poll.h"
#include "uqp_pair.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include <cmocka.h>

static struct aw_channel ch;
static int level, edge; /* epoll sets of the program's, with the channel's fd */

static int epoll_with(uint32_t events)
{
	struct epoll_event ev = { .events = events };
	int epfd = epoll_create1(EPOLL_CLOEXEC);

	assert_true(epfd >= 0);
	assert_int_equal(epoll_ctl(epfd, EPOLL_CTL_ADD, ch.fd, &ev), 0);
	return epfd;
}

static int setup(void **state)
{
	int err = pair_setup(state);
	struct pair *p = *state;

	assert_int_equal(aw_channel_init_for_qps(&ch), 0);
	end_set_channel(&p->b, &ch);
	level = epoll_with(EPOLLIN);
	edge = epoll_with(EPOLLIN | EPOLLET);
	return err;
}

static int teardown(void **state)
{
	int err = pair_teardown_stopped(state);

	close(level);
	close(edge);
	aw_channel_fini(&ch);
	return err;
}

static bool is_readable(int timeout_ms)
{
	struct pollfd pollfd = { .fd = ch.fd, .events = POLLIN };

	return poll(&pollfd, 1, timeout_ms) == 1;
}

static void assert_not_readable(void)
{
	struct timeval now = { 0, 0 };
	struct epoll_event ev;
	fd_set set;

	FD_ZERO(&set);
	FD_SET(ch.fd, &set);
	assert_false(is_readable(0));
	assert_int_equal(select(ch.fd + 1, &set, NULL, NULL, &now), 0);
	assert_int_equal(epoll_wait(level, &ev, 1, 0), 0);
	assert_int_equal(epoll_wait(edge, &ev, 1, 0), 0);
}

/*
 * The program waits by the edge, and takes the one event at once. Between the edge and the event the fd is not readable while a tick
 * receives what has made it so.
 */
static void take(void)
{
	const int wait_ms = (int)(UQP_PAIR_WAIT_NS / 1000000);
	struct epoll_event ev;
	void *object;
	int kind;

	assert_int_equal(epoll_wait(edge, &ev, 1, wait_ms), 1);
	assert_int_equal(epoll_wait(level, &ev, 1, wait_ms), 1);
	assert_true(is_readable(wait_ms));
	assert_int_equal(aw_channel_await(&ch, &object, &kind), 0);
	assert_not_readable();
}

static void post_receive(struct pair *p)
{
	struct aw_sge sge = end_sge(&p->b, 0, 16);

	assert_int_equal(aw_uqp_recv(p->b.qp, 1, &sge, 1), 0);
}

/* A request that has an event. */
static void talk(struct pair *p)
{
	struct aw_cq *cq = p->b.qp->attr.recv_cq;
	struct aw_cq_entry entry;

	post_receive(p);
	aw_cq_arm(cq, AW_ARM_NEXT);
	end_post(&p->a, AW_OP_SEND, &p->b, 4);
	take();
	assert_int_equal(aw_cq_poll(cq, &entry, 1), 1);
	end_wait_cqe(&p->a);
}

/* Messages come until the QPs are left to the program, and the progress thread moves nothing from then on. */
static inline void until_all_watched(struct pair *const pairs[], uint32_t count)
{
	uint64_t start = aw_now_ns();

	assert_int_equal(fcntl(ch.fd, F_SETFL, O_NONBLOCK), 0);
	for (;;) {
		for (uint32_t i = 0; i < count; i++)
			talk(pairs[i]);
		pair_stop_progress();
		if (ch.watched == count)
			return;
		pair_start_progress();
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
	}
}

static inline void until_watched(struct pair *p)
{
	struct pair *const pairs[] = { p };

	until_all_watched(pairs, 1);
	assert_true(uqp_is_away(p->b.qp, &ch));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
