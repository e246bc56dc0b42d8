// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QPs that are left to a thread that polls: they are served whatever that thread does next, and
// those that it cannot see are not left to it.
#include "net/qp/serving.h"

#include "../lib/full_set.h"
#include "../lib/pwait2.h"
#include "../lib/uqp_pair.h"
#include "base/clock.h"
#include "net/progress/engine.h"
#include "net/qp/cq_poll.h"
#include "net/qp/uqp_progress.h"
#include "net/qp/uqp_sock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

/* While it is closed the progress thread waits before it sleeps, until it is let through once. */
static struct {
	_Atomic bool closed, waits; /* waits: the progress thread is there */
	_Atomic uint32_t arrivals, lets_through;
} gate;

static void pass_gate(void)
{
	uint32_t once = 1;

	if (!gate.closed)
		return;
	gate.waits = true;
	gate.arrivals++;
	while (gate.closed && gate.lets_through == 0)
		sched_yield();
	atomic_compare_exchange_strong(&gate.lets_through, &once, 0);
	gate.waits = false;
}

/* Likewise. */
int epoll_pwait2(int epfd, struct epoll_event *ev, int max, const struct timespec *timeout,
		 const sigset_t *mask)
{
	if (epfd == aw_engine_epfd())
		pass_gate();
	return pwait2_call(epfd, ev, max, timeout, mask);
}

/* Until the progress thread has been round, and is at the gate again. */
static void until_round(uint32_t arrivals)
{
	uint64_t start = aw_now_ns();

	while (gate.arrivals == arrivals) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		sched_yield();
	}
}

static void close_gate(void)
{
	uint32_t arrivals = gate.arrivals;

	gate.closed = true;
	aw_engine_kick();
	until_round(arrivals);
}

static void open_gate(void)
{
	uint64_t start = aw_now_ns();

	gate.closed = false;
	while (gate.waits) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		sched_yield();
	}
}

static int teardown(void **state)
{
	open_gate();
	return pair_teardown(state);
}

static void tick_once(void)
{
	uint32_t arrivals = gate.arrivals;

	aw_engine_kick();
	gate.lets_through = 1;
	until_round(arrivals);
}

/* Polls e's CQ in vain until its QP is left to it; arrivals are what makes the progress thread look. */
static void poll_until_away(struct end *e, struct end *peer)
{
	struct aw_cq_entry entry;
	uint64_t start = aw_now_ns();

	while (!uqp_is_away(e->qp, NULL)) {
		assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
		for (int i = 0; i < 50; i++)
			aw_cq_poll(&e->cq, &entry, 1);
		end_post(peer, AW_OP_WRITE, e, 1);
		end_wait_cqe(peer);
	}
}

/* A thread that lost its CPU on the way may find that the QP was taken back meanwhile: again, then. */
static void leave_behind_gate(struct pair *p)
{
	for (;;) {
		poll_until_away(&p->b, &p->a);
		close_gate();
		if (uqp_is_away(p->b.qp, NULL))
			return;
		open_gate();
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

static void serving__comes_back_to_who_watches_memory(void **state)
{
	struct pair *p = *state;

	poll_until_away(&p->b, &p->a);
	watch_memory(&p->b, &p->a);
	uqp_wait_taken_back(p->b.qp, NULL);
}

enum {
	PAUSE = 3, /* ticks that are no reason to take a QP back */
	TICKS_MAX = 8, /* after so many it was */
};

static void poll_in_vain_once(struct end *e)
{
	struct aw_cq_entry entry;

	assert_int_equal(aw_cq_poll(&e->cq, &entry, 1), 0);
}

/* Who pauses is stood in for. */
static void serving__survives_a_pause(void **state)
{
	struct pair *p = *state;

	leave_behind_gate(p);
	for (int round = 0; round < 3; round++) {
		poll_in_vain_once(&p->b);
		tick_once();
		for (uint8_t i = 1; i <= PAUSE; i++) {
			p->a.buf[9]++;
			end_post(&p->a, AW_OP_WRITE, &p->b, 10);
			end_wait_cqe(&p->a);
			assert_int_not_equal(octet_at(p->b.buf + 9), p->a.buf[9]);
			tick_once();
			assert_int_equal(octet_at(p->b.buf + 9), p->a.buf[9]);
			assert_true(uqp_is_away(p->b.qp, NULL));
		}
	}
	for (int i = 0; i < TICKS_MAX; i++)
		tick_once();
	assert_false(uqp_is_away(p->b.qp, NULL));
}

enum {
	MESSAGES = 12,
	TICKS_UNSERVED = 4, /* within so many the progress thread serves */
};

/* Messages wait for the QP, with receives for them. */
static void send_messages(struct pair *p)
{
	struct aw_sge sge = end_sge(&p->b, 0, 4);

	for (int i = 0; i < MESSAGES; i++) {
		assert_int_equal(aw_uqp_recv(p->b.qp, 1, &sge, 1), 0);
		end_post(&p->a, AW_OP_SEND, &p->b, 4);
		end_wait_cqe(&p->a);
	}
}

/* Who takes what was received has not stopped; who takes send completions alone may have. */
static void serving__stays_with_who_takes_receives(void **state)
{
	struct pair *p = *state;
	struct aw_cq_entry entry;

	leave_behind_gate(p);
	send_messages(p);
	for (int i = 0; i < MESSAGES; i++) {
		assert_int_equal(aw_cq_poll(&p->b.cq, &entry, 1), 1);
		tick_once();
		assert_true(uqp_is_away(p->b.qp, NULL));
	}
	for (int i = 0; i < TICKS_MAX; i++) {
		end_post(&p->b, AW_OP_WRITE, &p->a, 4);
		end_wait_cqe(&p->b);
		tick_once();
	}
	assert_false(uqp_is_away(p->b.qp, NULL));
}

/* A poller that never finds its CQ empty serves no QP: the progress thread does. */
static void serving__is_served_beside_who_takes_receives(void **state)
{
	struct pair *p = *state;
	struct aw_cq_entry entry;

	leave_behind_gate(p);
	send_messages(p);
	assert_int_equal(aw_cq_poll(&p->b.cq, &entry, 1), 1); /* serves, and finds all of them */
	tick_once();
	for (int left = MESSAGES - 1; left >= TICKS_UNSERVED; left -= TICKS_UNSERVED) {
		p->a.buf[9]++;
		end_post(&p->a, AW_OP_WRITE, &p->b, 10);
		end_wait_cqe(&p->a);
		for (int tick = 0; tick < TICKS_UNSERVED; tick++) {
			assert_int_equal(aw_cq_poll(&p->b.cq, &entry, 1), 1);
			tick_once();
		}
		assert_int_equal(octet_at(p->b.buf + 9), p->a.buf[9]);
		assert_true(uqp_is_away(p->b.qp, NULL));
	}
}

/* The kernel has no memory to listen again. */
static void serving__served_where_it_cannot_come_back(void **state)
{
	struct pair *p = *state;

	/* Left to pollers, its socket stays in the set, for the end: to come back it needs no memory. */
	if (p->b.qp->ring)
		skip();
	poll_until_away(&p->b, &p->a);
	full_epfd = aw_engine_epfd();
	for (int i = 0; i < 20; i++)
		watch_memory(&p->b, &p->a);
	assert_true(uqp_is_away(p->b.qp, NULL));
	full_epfd = -1;
	uqp_wait_taken_back(p->b.qp, NULL);
}

/* The same of a QP that the progress thread serves, when the receive that its stream was held for is there. */
static void listen__again_where_there_was_no_memory(void **state)
{
	struct pair *p = *state;
	struct aw_sge sge = end_sge(&p->b, 0, 4);

	end_post(&p->a, AW_OP_SEND, &p->b, 4);
	end_wait_cqe(&p->a);
	end_wait_held(&p->b);
	full_epfd = aw_engine_epfd();
	assert_int_equal(aw_uqp_recv(p->b.qp, 1, &sge, 1), 0);
	for (int i = 0; i < 3; i++)
		watch_memory(&p->b, &p->a);
	full_epfd = -1;
	watch_memory(&p->b, &p->a);
}

static void serving__comes_back_to_who_arms(void **state)
{
	struct pair *p = *state;

	poll_until_away(&p->b, &p->a);
	aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
	watch_memory(&p->b, &p->a);
	/* Where the progress thread held the QP's lock at the arm, its next tick takes the QP back. */
	uqp_wait_taken_back(p->b.qp, NULL);
	for (int i = 0; i < 100; i++)
		watch_memory(&p->b, &p->a);
	assert_false(uqp_is_away(p->b.qp, NULL));
	assert_int_equal(p->b.cq.qps_away, 0);
}

/* Whoever polls on meanwhile: it is the sleeper that must be woken. */
static void serving__comes_back_to_who_armed_when_busy(void **state)
{
	struct pair *p = *state;

	leave_behind_gate(p);
	aw_lock(&p->b.qp->lock);
	aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
	aw_unlock(&p->b.qp->lock);
	assert_true(uqp_is_away(p->b.qp, NULL));
	poll_in_vain_once(&p->b);
	tick_once();
	assert_false(uqp_is_away(p->b.qp, NULL));
}

static void serving__comes_back_to_who_armed_before(void **state)
{
	struct pair *p = *state;

	leave_behind_gate(p);
	aw_cq_arm(&p->b.cq, AW_ARM_NEXT);
	assert_false(uqp_is_away(p->b.qp, NULL));
	aw_lock(&p->b.qp->lock);
	uqp_leave_to_pollers(p->b.qp);
	aw_unlock(&p->b.qp->lock);
	poll_in_vain_once(&p->b);
	tick_once();
	assert_false(uqp_is_away(p->b.qp, NULL));
}

static void serving__ends_with_the_qp(void **state)
{
	struct pair *p = *state;

	poll_until_away(&p->b, &p->a);
	aw_uqp_reset(p->b.qp);
	assert_int_equal(p->b.cq.qps_away, 0);
	assert_int_equal(p->b.cq.pollers.qps, 0);
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
static bool was_away(struct end *e, struct end *peer)
{
	struct poller poller = { .cq = &e->cq };
	bool away = false;

	assert_int_equal(pthread_create(&poller.thread, NULL, poll_in_vain, &poller), 0);
	for (uint8_t round = 1; round < 100; round++) {
		uint64_t start = aw_now_ns();

		peer->buf[9] = round;
		end_post(peer, AW_OP_WRITE, e, 10);
		while (octet_at(e->buf + 9) != round) {
			assert_true(aw_now_ns() - start < UQP_PAIR_WAIT_NS);
			away |= e->cq.qps_away > 0;
			sched_yield();
		}
		end_wait_cqe(peer);
	}
	poller.stop = true;
	pthread_join(poller.thread, NULL);
	return away;
}

static void make_others(struct pair *p, struct end *others)
{
	aw_uqp_reset(p->a.qp);
	aw_uqp_reset(p->b.qp);
	for (int i = 0; i < OTHERS; i++)
		end_make_on(&others[i], &p->pd, &p->b.cq);
	assert_true(p->b.cq.epfd >= 0);
}

static void destroy_others(struct end *others)
{
	for (int i = 0; i < OTHERS; i++)
		end_destroy(&others[i]);
}

/* The CQ was polled in vain long before: no sign that this QP is polled for. */
static void serving__not_at_the_first_event(void **state)
{
	struct pair *p = *state;

	aw_uqp_reset(p->a.qp);
	aw_uqp_reset(p->b.qp);
	for (int i = 0; i < 50; i++)
		poll_in_vain_once(&p->b);
	pair_attach(p);
	struct aw_channel *channel;

	aw_lock(&p->b.qp->lock);
	const struct aw_serve_seen seen = aw_serving_at_arrival(p->b.qp, aw_now_ns(), &channel);

	aw_unlock(&p->b.qp->lock);
	assert_int_equal(seen.polls, 0);
}

/* Who serves many at once polls the more seldom. */
static void serving__counts_what_a_poll_serves(void **state)
{
	struct pair *p = *state;
	struct end others[OTHERS];

	make_others(p, others);
	pair_attach(p);
	aw_engine_fork_prepare();
	poll_in_vain_once(&p->b);
	uint32_t before = p->b.cq.pollers.turns;

	poll_in_vain_once(&p->b);
	uint32_t between = p->b.cq.pollers.turns;

	end_post(&p->a, AW_OP_WRITE, &p->b, 10);
	end_wait_cqe(&p->a);
	poll_in_vain_once(&p->b);
	uint32_t after = p->b.cq.pollers.turns;

	aw_engine_fork_done();
	destroy_others(others);
	assert_int_equal(between, before + 1);
	assert_int_equal(after, between + 2);
}

static void serving__not_where_the_poller_cannot_see_it(void **state)
{
	struct pair *p = *state;
	struct end others[OTHERS];
	bool away;

	make_others(p, others);
	full_epfd = p->b.cq.epfd;
	pair_attach(p);
	away = was_away(&p->b, &p->a);
	full_epfd = -1;
	destroy_others(others);
	assert_false(away);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, pair_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(serving__comes_back_to_who_watches_memory),
		CASE(serving__survives_a_pause),
		CASE(serving__stays_with_who_takes_receives),
		CASE(serving__is_served_beside_who_takes_receives),
		CASE(serving__served_where_it_cannot_come_back),
		CASE(listen__again_where_there_was_no_memory),
		CASE(serving__comes_back_to_who_arms),
		CASE(serving__comes_back_to_who_armed_when_busy),
		CASE(serving__comes_back_to_who_armed_before),
		CASE(serving__ends_with_the_qp),
		CASE(serving__not_at_the_first_event),
		CASE(serving__counts_what_a_poll_serves),
		CASE(serving__not_where_the_poller_cannot_see_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
