// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program that waits for a channel's fd by select(2), poll(2) or epoll(7): whatever its QP receives, the fd is readable
// only where ibv_get_cq_event has an event.
#include "net/qp/channel_wait.h"

#include "../lib/uqp_pair.h"
#include "net/qp/cq_poll.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#include <cmocka.h>

/* A server of many messages: what the library learns of a program's ways it has learnt by then. */
#define ROUNDS 64

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

	assert_int_equal(aw_channel_init(&ch), 0);
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

/* The program waits by the edge, and takes the one event at once. */
static void take(void)
{
	struct epoll_event ev;
	void *object;
	int kind;

	assert_int_equal(epoll_wait(edge, &ev, 1, (int)(UQP_PAIR_WAIT_NS / 1000000)), 1);
	assert_int_equal(epoll_wait(level, &ev, 1, 0), 1);
	assert_true(is_readable(0));
	assert_int_equal(aw_channel_await(&ch, &object, &kind), 0);
	assert_not_readable();
}

/* A request that has an event. */
static void talk(struct pair *p)
{
	struct aw_sge sge = end_sge(&p->b, 0, 16);
	struct aw_cq_entry entry;

	assert_int_equal(aw_uqp_recv(p->b.qp, 1, &sge, 1), 0);
	aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
	end_post(&p->a, AW_OP_SEND, &p->b, 4);
	take();
	assert_int_equal(aw_cq_poll(&p->b.cq, &entry, 1), 1);
	end_wait_cqe(&p->a);
}

/*
 * A Write, which has no event: the progress thread looks at the socket, where the bytes are, only when the fd has been looked
 * at.
 */
static void write_unseen(struct pair *p, uint8_t octet)
{
	pair_stop_progress();
	p->a.buf[0] = octet;
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	assert_not_readable();
	pair_start_progress();
	end_wait_cqe(&p->a);
	while (octet_at(p->b.buf) != octet)
		assert_not_readable();
	assert_not_readable();
}

static void talk_and_write(struct pair *p)
{
	for (int round = 0; round < ROUNDS; round++) {
		talk(p);
		write_unseen(p, (uint8_t)(round + 1));
	}
}

static void channel_poll__readable_for_events_alone(void **state)
{
	talk_and_write(*state);
}

static void channel_poll__readable_for_events_alone_without_blocking(void **state)
{
	void *object;
	int kind;

	assert_int_equal(fcntl(ch.fd, F_SETFL, O_NONBLOCK), 0);
	talk_and_write(*state);
	assert_int_equal(aw_channel_await(&ch, &object, &kind), EAGAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(channel_poll__readable_for_events_alone, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			channel_poll__readable_for_events_alone_without_blocking, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
