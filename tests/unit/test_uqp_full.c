// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP's full socket: when it is one, and what is not tried then.
#define _GNU_SOURCE /* POLLRDHUP */
#include <sys/socket.h>

static _Atomic unsigned int taken, refused; /* sends, by whether the socket took anything */

static ssize_t count(ssize_t n)
{
	if (n > 0)
		taken++;
	else
		refused++;
	return n;
}

static ssize_t counted_send(int fd, const void *buf, size_t len, int flags)
{
	return count(send(fd, buf, len, flags));
}

static ssize_t counted_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return count(sendmsg(fd, msg, flags));
}

/* The carrier itself, over those. */
#define send counted_send
#define sendmsg counted_sendmsg
#include "net/qp/carrier_tcp.c"
#undef send
#undef sendmsg

#include <sched.h>

static _Atomic unsigned int yields;

static int counted_yield(void)
{
	yields++;
	return sched_yield();
}

/* And polling. */
#define sched_yield counted_yield
#include "net/qp/cq_poll.c"
#undef sched_yield

#include "../lib/uqp_pair.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum {
	POLLS = 1000,
	WRITES_MAX = 60,
	SEND_BUFFER_MAX = 2 * 208 * 1024, /* as the kernel counts */
};

static bool is_full(struct end *e)
{
	aw_lock(&e->qp->lock);
	bool full = e->qp->tx_blocked;

	aw_unlock(&e->qp->lock);
	return full;
}

/* The peer takes nothing until its lock is given back. */
static void fill_socket(struct pair *p)
{
	int writes = 0;

	aw_lock(&p->b.qp->lock);
	while (!is_full(&p->a) && writes++ < WRITES_MAX)
		end_post(&p->a, AW_OP_WRITE, &p->b, BUF_OCTETS);
}

static void poll_often(struct end *e)
{
	struct aw_cq_entry entry;

	for (int i = 0; i < POLLS; i++)
		aw_cq_poll(&e->cq, &entry, 1);
}

static void full__is_not_tried(void **state)
{
	struct pair *p = *state;
	bool full;

	fill_socket(p);
	taken = refused = 0;
	poll_often(&p->a);
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	full = is_full(&p->a);
	aw_unlock(&p->b.qp->lock);
	assert_true(full);
	/* One that fills the socket may be followed by one that finds it full. */
	assert_in_range(refused, 0, taken);
}

static void full__goes_on_when_there_is_room(void **state)
{
	struct pair *p = *state;
	uint32_t writes;

	fill_socket(p);
	aw_unlock(&p->b.qp->lock);
	end_post(&p->a, AW_OP_WRITE, &p->b, 1);
	for (writes = p->a.qp->core.sq.tail; writes > 0; writes--)
		assert_int_equal(end_wait_cqe(&p->a).cqe.status, AW_WC_SUCCESS);
}

/* Who polls in vain keeps its CPU unless nothing can come of it. */
static void full__leaves_the_cpu_to_the_peer(void **state)
{
	struct pair *p = *state;
	unsigned int before;

	yields = 0;
	poll_often(&p->a);
	before = yields;
	fill_socket(p);
	poll_often(&p->a);
	aw_unlock(&p->b.qp->lock);
	assert_int_equal(before, 0);
	assert_in_range(yields, 1, POLLS);
}

static int send_buffer(int fd)
{
	int octets = 0;
	socklen_t len = sizeof(octets);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &octets, &len), 0);
	return octets;
}

static void send_buffer__is_small_on_one_host(void **state)
{
	struct pair *p = *state;

	assert_in_range(send_buffer(p->a.qp->fd), 1, SEND_BUFFER_MAX);
	for (int i = 0; i < 4; i++) {
		end_post(&p->a, AW_OP_WRITE, &p->b, BUF_OCTETS);
		assert_int_equal(end_wait_cqe(&p->a).cqe.status, AW_WC_SUCCESS);
	}
	assert_in_range(send_buffer(p->a.qp->fd), 1, SEND_BUFFER_MAX);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(full__is_not_tried),
		CASE(full__goes_on_when_there_is_room),
		CASE(full__leaves_the_cpu_to_the_peer),
		CASE(send_buffer__is_small_on_one_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
