// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QPs that ibv_modify_qp connects: whoever is first, by whatever address, and both at once.
#include "../lib/until.h"
#include "walk.h"

#include "net/base/bounds.h"
#include "net/progress/engine.h"
#include "net/qp/rnr.h"
#include "net/roce/qpn.h"
#include "net/roce/rc_impl.h"
#include "verbs/private.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
	AGAIN = 200,
	MANY = 600, /* more than two ports have numbers for */
};

static int again = AGAIN;

static void talk_by(struct fixture *f, const struct route *route)
{
	struct two t;

	two_make(&t, f);
	two_walk(&t, route);
	two_talk(&t);
	two_destroy(&t);
}

static void connect__by_ipv4(void **state)
{
	struct route route = route_loopback(*state);

	talk_by(*state, &route);
}

static void connect__by_ipv6(void **state)
{
	struct route route = route_by(*state, "::1");

	talk_by(*state, &route);
}

static void connect__by_lid(void **state)
{
	struct route route = route_by_lid();

	talk_by(*state, &route);
}

/* Every order of the two ends' steps from INIT to RTS, either end first. */
static void connect__in_any_order(void **state)
{
	static const char *const orders[] = { "AaBb", "ABab", "ABba", "BAab", "BAba", "BbAa" };
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct two t;

	two_make(&t, f);
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		walk_init(&t.a);
		walk_init(&t.b);
		for (const char *step = orders[i]; *step; step++) {
			struct walker *self = *step == 'A' || *step == 'a' ? &t.a : &t.b;
			struct walker *peer = self == &t.a ? &t.b : &t.a;

			if (*step == 'A' || *step == 'B')
				walk_rtr(self, &route, peer->qp->qp_num);
			else
				walk_rts(self);
		}
		two_talk(&t);
		walk_reset(&t.a);
		walk_reset(&t.b);
	}
	two_destroy(&t);
}

/* With the progress thread held both have called before either hears of the other. */
static void collide(struct fixture *f, bool a_first)
{
	struct route route = route_loopback(f);
	uint32_t yield_ms = aw_bounds.yield_ms;
	struct two t;

	two_make(&t, f);
	aw_bounds.yield_ms = 0;
	aw_engine_fork_prepare();
	walk(a_first ? &t.a : &t.b, &route, a_first ? t.b.qp->qp_num : t.a.qp->qp_num);
	walk(a_first ? &t.b : &t.a, &route, a_first ? t.a.qp->qp_num : t.b.qp->qp_num);
	aw_engine_fork_done();
	two_talk(&t);
	aw_bounds.yield_ms = yield_ms;
	two_destroy(&t);
}

static void connect__both_call(void **state)
{
	collide(*state, true);
	collide(*state, false);
}

/* What is posted before the peer is there goes out when it is, in order. */
static void post__before_the_peer_is_told(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct ibv_async_event event;
	struct two t;

	two_make(&t, f);
	walk(&t.a, &route, t.b.qp->qp_num);
	memset(t.a.memory, 7, 64);
	walker_post(&t.a, IBV_WR_RDMA_WRITE, 64, &t.b);
	walker_post(&t.a, IBV_WR_SEND, 1, NULL);
	walk_init(&t.b);
	walker_recv(&t.b, 1);
	walk_rtr(&t.b, &route, t.a.qp->qp_num);
	walker_received(&t.b, IBV_WC_SUCCESS);
	assert_int_equal(t.b.memory[63], 7);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	event = async_wait(f->context);
	assert_int_equal(event.event_type, IBV_EVENT_COMM_EST);
	assert_ptr_equal(event.element.qp, t.b.qp);
	ibv_ack_async_event(&event);
	two_destroy(&t);
}

/* The event was raised for the peer's first FPDU, whoever's it was. */
static bool heard_of(struct ibv_qp *ibv, uint32_t event)
{
	struct aw_uqp *qp = avb_qp_uqp(ibv);
	bool heard;

	aw_lock(&qp->lock);
	heard = qp->events_told & event && !qp->delivering;
	aw_unlock(&qp->lock);
	return heard;
}

/* A connection is none of the peer's messages: only the first of these raises COMM_EST. */
static void comm_est__of_a_message_alone(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct ibv_async_event event;
	struct two t;

	two_make(&t, f);
	walk_init(&t.b);
	walker_recv(&t.b, 1);
	walk_rtr(&t.b, &route, t.a.qp->qp_num);
	walk(&t.a, &route, t.b.qp->qp_num);
	while (!heard_of(t.b.qp, AW_UQP_READY))
		continue;
	assert_int_equal(ibv_get_async_event(f->context, &event), -1);
	assert_int_equal(errno, EAGAIN);
	walker_post(&t.a, IBV_WR_SEND, 1, NULL);
	walker_received(&t.b, IBV_WC_SUCCESS);
	event = async_wait(f->context);
	assert_int_equal(event.event_type, IBV_EVENT_COMM_EST);
	assert_ptr_equal(event.element.qp, t.b.qp);
	ibv_ack_async_event(&event);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	two_destroy(&t);
}

/* Both ends of this persona agree on atomic writes and flushes; one may be posted before that. */
static void atomic_write__agreed_on(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct two t;

	two_make(&t, f);
	walk(&t.a, &route, t.b.qp->qp_num);
	memcpy(t.a.memory, "abcdefgh", 8);
	walker_post(&t.a, IBV_WR_ATOMIC_WRITE, 8, &t.b);
	walk(&t.b, &route, t.a.qp->qp_num);
	assert_int_equal(walker_sent(&t.a, IBV_WC_SUCCESS).opcode, IBV_WC_ATOMIC_WRITE);
	assert_memory_equal(t.b.memory, "abcdefgh", 8);
	assert_true(avb_qp_uqp(t.a.qp)->core.stream.placement);
	two_destroy(&t);
}

/* As any other WR: RTS is enough, whoever else is there. */
static void bind_mw__before_the_peer_is_told(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	char memory[64] = { 0 };
	struct ibv_mr *mr = ibv_reg_mr(f->pd, memory, sizeof(memory),
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(f->pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = { mr, (uintptr_t)memory, sizeof(memory), IBV_ACCESS_REMOTE_READ },
	};
	struct two t;

	two_make(&t, f);
	walk(&t.a, &route, t.b.qp->qp_num);
	assert_int_equal(ibv_bind_mw(t.a.qp, mw, &bind), 0);
	walk(&t.b, &route, t.a.qp->qp_num);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	two_destroy(&t);
}

/* More Reads than either end takes at once. */
static void read__depths_are_agreed_on(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct two t;

	two_make(&t, f);
	memset(t.b.memory, 9, 64);
	two_walk(&t, &route);
	for (int i = 0; i < WR_MAX; i++)
		walker_post(&t.a, IBV_WR_RDMA_READ, 64, &t.b);
	for (int i = 0; i < WR_MAX; i++)
		walker_sent(&t.a, IBV_WC_SUCCESS);
	assert_int_equal(t.a.memory[63], 9);
	two_destroy(&t);
}

static void self__send_write_and_read(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct walker w, target;

	walker_make(&w, f);
	walker_make(&target, f); /* its memory alone */
	walk(&w, &route, w.qp->qp_num);
	walker_talk(&w, &w);
	memset(w.memory, 3, 64);
	walker_post(&w, IBV_WR_RDMA_WRITE, 64, &target);
	walker_sent(&w, IBV_WC_SUCCESS);
	memset(w.memory, 0, 64);
	walker_post(&w, IBV_WR_RDMA_READ, 64, &target);
	walker_sent(&w, IBV_WC_SUCCESS);
	assert_int_equal(w.memory[63], 3);
	walker_destroy(&w);
	walker_destroy(&target);
}

/* The same numbers again and again: nothing of one connection reaches the next. */
static void reset__and_again(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct two t;

	two_make(&t, f);
	for (int i = 0; i < again; i++) {
		two_walk(&t, &route);
		walker_post(&t.b, IBV_WR_SEND, 1, NULL); /* a leftover: nobody receives it */
		walker_talk(&t.a, &t.b);
		walk_reset(i % 2 ? &t.a : &t.b);
		walk_reset(i % 2 ? &t.b : &t.a);
	}
	two_destroy(&t);
}

/* One end is through its next walk before the other one has left the last. */
static void reset__one_end_is_ahead(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct two t;

	two_make(&t, f);
	two_walk(&t, &route);
	for (int i = 0; i < again; i++) {
		struct walker *first = i % 2 ? &t.a : &t.b, *second = i % 2 ? &t.b : &t.a;

		two_talk(&t);
		walk_reset(first);
		walk(first, &route, second->qp->qp_num);
		walk_reset(second);
		walk(second, &route, first->qp->qp_num);
	}
	two_talk(&t);
	two_destroy(&t);
}

/* To its peer a QP that was reset before anything was said is the same as before. */
static void reset__of_an_unused_connection(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct two t;

	two_make(&t, f);
	two_walk(&t, &route);
	for (int i = 0; i < 10; i++) {
		walk_reset(&t.a);
		walk(&t.a, &route, t.b.qp->qp_num);
	}
	two_talk(&t);
	two_destroy(&t);
}

static void reset__to_another_peer(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct walker third;
	struct two t;

	two_make(&t, f);
	walker_make(&third, f);
	two_walk(&t, &route);
	two_talk(&t);
	walk(&third, &route, t.a.qp->qp_num);
	walk_reset(&t.a);
	walk(&t.a, &route, third.qp->qp_num);
	walker_talk(&t.a, &third);
	walker_talk(&third, &t.a);
	walker_destroy(&third);
	two_destroy(&t);
}

/* What is posted in SQD waits for RTS; the other direction goes on. */
static void sqd__halts_the_send_queue(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_async_event event;
	struct ibv_wc wc;
	struct two t;

	two_make(&t, f);
	two_walk(&t, &route);
	walker_talk(&t.a, &t.b);
	assert_int_equal(ibv_modify_qp(t.a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY),
			 0);
	do {
		event = async_wait(f->context);
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_SQ_DRAINED);
	assert_ptr_equal(event.element.qp, t.a.qp);
	walker_recv(&t.b, 1);
	walker_post(&t.a, IBV_WR_SEND, 1, NULL);
	walker_talk(&t.b, &t.a);
	assert_int_equal(ibv_poll_cq(t.b.recv_cq, 1, &wc), 0);
	assert_int_equal(qp_state(t.a.qp), IBV_QPS_SQD);
	assert_int_equal(qp_move(t.a.qp, IBV_QPS_RTS), 0);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	walker_received(&t.b, IBV_WC_SUCCESS);
	two_destroy(&t);
}

/* Each move to SQD says for itself whether it is to be told of. */
static void sqd__is_told_of_where_it_was_asked_for(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct pollfd events = { .fd = f->context->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	struct walker w;

	walker_make(&w, f);
	walk(&w, &route, w.qp->qp_num);
	walker_talk(&w, &w);
	assert_int_equal(ibv_modify_qp(w.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	event = async_wait(f->context);
	assert_int_equal(event.event_type, IBV_EVENT_SQ_DRAINED);
	ibv_ack_async_event(&event);
	assert_int_equal(qp_move(w.qp, IBV_QPS_RTS), 0);
	assert_int_equal(qp_move(w.qp, IBV_QPS_SQD), 0); /* drained before the call is over */
	assert_int_equal(poll(&events, 1, 0), 0);
	walker_destroy(&w);
}

static uint32_t rnr_ms(const struct walker *w)
{
	struct aw_uqp *uqp = aw_qpn_get(w->qp->qp_num);
	uint32_t ms = uqp->rnr_ms;

	aw_uqp_put(uqp);
	return ms;
}

static void rnr__timer_changes_in_rts(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	struct ibv_qp_attr rtr, rts = walk_attr_rts(), timer = { .min_rnr_timer = 31 };
	struct walker w;

	walker_make(&w, f);
	rtr = walk_attr_rtr(&route, w.qp->qp_num);
	rtr.min_rnr_timer = 0;
	rts.rnr_retry = 1;
	walk_init(&w);
	assert_int_equal(ibv_modify_qp(w.qp, &rtr, WALK_RTR), 0);
	assert_int_equal(ibv_modify_qp(w.qp, &rts, WALK_RTS), 0);
	assert_int_equal(rnr_ms(&w), 2 * 65536 / 100);
	assert_int_equal(ibv_modify_qp(w.qp, &timer, IBV_QP_MIN_RNR_TIMER), 0);
	assert_int_equal(rnr_ms(&w), AW_RNR_MS);
	timer.min_rnr_timer = 0;
	assert_int_equal(qp_move(w.qp, IBV_QPS_SQD), 0);
	assert_int_equal(ibv_modify_qp(w.qp, &timer, IBV_QP_MIN_RNR_TIMER), 0);
	assert_int_equal(rnr_ms(&w), 2 * 65536 / 100);
	walker_destroy(&w);
}

#define CALLERS (AW_RC_HELD_MAX + 1)

/* Bits of the callers whose Requests the QP holds. */
static uint32_t held_at(struct ibv_qp *called, const struct walker callers[CALLERS])
{
	struct aw_rc *rc = avb_qp_uqp(called)->rc;
	uint32_t bits = 0;

	aw_lock(&rc->lock);
	for (int i = 0; i < CALLERS; i++)
		for (int j = 0; j < AW_RC_HELD_MAX; j++)
			if (rc->held[j].conn &&
			    rc->held[j].request.src_qpn == callers[i].qp->qp_num)
				bits |= 1u << i;
	aw_unlock(&rc->lock);
	return bits;
}

/*
 * One more calls a QP without a peer than it holds Requests of: the oldest gives its place and calls again, so that each is held
 * at some time, and gives its place long before its time is over. Then the QP is told of one.
 */
static void connect__more_callers_than_are_held(void **state)
{
	struct fixture *f = *state;
	struct route route = route_loopback(f);
	const uint32_t all = (1u << CALLERS) - 1;
	struct walker callers[CALLERS], called;
	time_t since[CALLERS] = { 0 };
	uint32_t held = 0, left = 0;

	walker_make(&called, f);
	walk_init(&called);
	for (int i = 0; i < CALLERS; i++) {
		walker_make(&callers[i], f);
		walk(&callers[i], &route, called.qp->qp_num);
	}
	repeat_until(left == all)
	{
		uint32_t before = held;

		held = held_at(called.qp, callers);
		for (int i = 0; i < CALLERS; i++)
			if (held & ~before & 1u << i)
				since[i] = until_now();
			else if (before & ~held & 1u << i &&
				 until_now() - since[i] < AW_RC_HELD_MS / 2000)
				left |= 1u << i;
		sched_yield();
	}
	walk_rtr(&called, &route, callers[0].qp->qp_num);
	walk_rts(&called);
	walker_talk(&callers[0], &called);
	for (int i = 0; i < CALLERS; i++)
		walker_destroy(&callers[i]);
	walker_destroy(&called);
}

static void connect__many(void **state)
{
	static struct two many[MANY / 2];
	struct fixture *f = *state;
	struct route route = route_loopback(f);

	for (int i = 0; i < MANY / 2; i++)
		two_make(&many[i], f);
	for (int i = 0; i < MANY / 2; i++)
		walk(&many[i].a, &route, many[i].b.qp->qp_num);
	for (int i = MANY / 2 - 1; i >= 0; i--)
		walk(&many[i].b, &route, many[i].a.qp->qp_num);
	for (int i = 0; i < MANY / 2; i++)
		two_talk(&many[i]);
	for (int i = 0; i < MANY / 2; i++)
		two_destroy(&many[i]);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

/* With a number: the resets alone, so many. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WITH(connect__by_ipv4),
		WITH(connect__by_ipv6),
		WITH(connect__by_lid),
		WITH(connect__in_any_order),
		WITH(connect__both_call),
		WITH(post__before_the_peer_is_told),
		WITH(comm_est__of_a_message_alone),
		WITH(atomic_write__agreed_on),
		WITH(bind_mw__before_the_peer_is_told),
		WITH(read__depths_are_agreed_on),
		WITH(self__send_write_and_read),
		WITH(reset__and_again),
		WITH(reset__one_end_is_ahead),
		WITH(reset__of_an_unused_connection),
		WITH(reset__to_another_peer),
		WITH(sqd__halts_the_send_queue),
		WITH(sqd__is_told_of_where_it_was_asked_for),
		WITH(rnr__timer_changes_in_rts),
		WITH(connect__more_callers_than_are_held),
		WITH(connect__many),
	};

	walk_persona();
	if (argc > 1) {
		again = atoi(argv[1]);
		cmocka_set_test_filter("reset__*");
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
