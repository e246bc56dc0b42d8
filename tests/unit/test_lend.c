// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QPs that are left to a thread that polls: they are served whatever that thread does next, and
// those that it cannot see are not left to it.
#include "net/lend.h"

#include "../lib/uqp_pair.h"
#include "net/engine.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

static _Atomic int full_epfd = -1; /* this set takes no more fds */

/* Before the C library's. */
int epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	if (op == EPOLL_CTL_ADD && epfd == full_epfd) {
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_epoll_ctl, epfd, op, fd, ev);
}

static bool is_lent(struct aw_uqp *qp)
{
	pthread_mutex_lock(&qp->lock);
	bool lent = qp->lent;

	pthread_mutex_unlock(&qp->lock);
	return lent;
}

/* Polls e's CQ in vain until its QP is lent; arrivals are what makes the progress thread look. */
static void poll_until_lent(struct end *e, struct end *peer)
{
	struct aw_cq_entry entry;
	uint64_t start = aw_now_ns();

	while (!is_lent(e->qp)) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		for (int i = 0; i < 50; i++)
			aw_cq_poll(&e->cq, &entry, 1);
		end_post(peer, AW_OP_WRITE, e, 1);
		end_wait_cqe(peer);
	}
}

static void watch_memory(struct end *e, struct end *peer)
{
	const uint8_t *last = e->buf + 9;
	uint64_t start = aw_now_ns();

	peer->buf[9] = (uint8_t)(octet_at(last) + 1);
	end_post(peer, AW_OP_WRITE, e, 10);
	while (octet_at(last) != peer->buf[9]) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		sched_yield();
	}
	end_wait_cqe(peer);
}

static void lend__comes_back_to_who_watches_memory(void **state)
{
	struct pair *p = *state;

	poll_until_lent(&p->b, &p->a);
	watch_memory(&p->b, &p->a);
	assert_false(is_lent(p->b.qp));
}

static void lend__comes_back_to_who_arms(void **state)
{
	struct pair *p = *state;

	poll_until_lent(&p->b, &p->a);
	aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
	watch_memory(&p->b, &p->a);
	assert_false(is_lent(p->b.qp));
	for (int i = 0; i < 100; i++)
		watch_memory(&p->b, &p->a);
	assert_false(is_lent(p->b.qp));
	assert_int_equal(p->b.cq.lent, 0);
}

static void lend__ends_with_the_qp(void **state)
{
	struct pair *p = *state;

	poll_until_lent(&p->b, &p->a);
	aw_uqp_reset(p->b.qp);
	assert_int_equal(p->b.cq.lent, 0);
}

enum {
	OTHERS = 4, /* with one more the CQ has an epoll set */
};

struct poller {
	struct aw_cq *cq;
	pthread_t thread;
	_Atomic bool stop;
};

static void *poll_in_vain(void *arg)
{
	struct poller *poller = arg;
	struct aw_cq_entry entry;

	while (!poller->stop)
		aw_cq_poll(poller->cq, &entry, 1);
	return NULL;
}

/* Writes arrive though the only thread that polls does not see them; says if it was left them. */
static bool was_lent(struct end *e, struct end *peer)
{
	struct poller poller = { .cq = &e->cq };
	bool lent = false;

	assert_int_equal(pthread_create(&poller.thread, NULL, poll_in_vain, &poller), 0);
	for (uint8_t round = 1; round < 100; round++) {
		peer->buf[9] = round;
		end_post(peer, AW_OP_WRITE, e, 10);
		while (octet_at(e->buf + 9) != round) {
			lent |= e->cq.lent > 0;
			sched_yield();
		}
		end_wait_cqe(peer);
	}
	poller.stop = true;
	pthread_join(poller.thread, NULL);
	return lent;
}

static void lend__not_where_the_poller_cannot_see_it(void **state)
{
	struct pair *p = *state;
	struct end others[OTHERS];
	bool lent;

	aw_uqp_reset(p->a.qp);
	aw_uqp_reset(p->b.qp);
	for (int i = 0; i < OTHERS; i++)
		end_make_on(&others[i], &p->pd, &p->b.cq);
	full_epfd = p->b.cq.epfd;
	assert_true(full_epfd >= 0);
	pair_attach(p);
	lent = was_lent(&p->b, &p->a);
	full_epfd = -1;
	for (int i = 0; i < OTHERS; i++)
		end_destroy(&others[i]);
	assert_false(lent);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(lend__comes_back_to_who_watches_memory),
		CASE(lend__comes_back_to_who_arms),
		CASE(lend__ends_with_the_qp),
		CASE(lend__not_where_the_poller_cannot_see_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
