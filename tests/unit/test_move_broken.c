// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A peer that writes impossible positions into the memory: its QP ends at once in an error that the program is told of, in
// either persona, also while the stream is held and while the move is halfway. A QP that did not would keep its thread busy.
#include "../lib/move_peer.h"
#include "base/clock.h"
#include "net/base/policy_env.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define PAGE_OCTETS 4096
#define SOON_NS UINT64_C(3000000000)

static int make_nothing(struct aw_uqp *qp)
{
	(void)qp;
	return 0;
}

static void do_nothing(struct aw_uqp *qp)
{
	(void)qp;
}

static const struct aw_uqp_kind quiet_kind = {
	.create = make_nothing,
	.open = make_nothing,
	.close = do_nothing,
	.destroy = do_nothing,
	.follow = do_nothing,
};

/* As in the roce persona: of most ends of its stream the program is not notified, and it may wait for a receive for ever. */
static void become_roce(struct peer *p)
{
	struct aw_uqp *qp = p->e.qp;

	aw_lock(&qp->lock);
	qp->attr.kind = &quiet_kind;
	qp->by_rc = true;
	qp->rnr_ms = 0;
	aw_unlock(&qp->lock);
}

static void join(struct peer *p, bool initiates, bool roce)
{
	peer_join(p, initiates, true);
	if (roce)
		become_roce(p);
}

static void break_head(struct peer *p)
{
	atomic_store(&p->ring->duplex.own->head, UINT64_MAX / 2);
}

static void break_tail(struct peer *p)
{
	atomic_store(&p->ring->duplex.own->tail, UINT64_MAX / 2);
	peer_ring_bells(p, 1);
}

static void assert_ends(struct peer *p)
{
	uint64_t start = aw_now_ns();

	while (aw_uqp_state(p->e.qp) != AW_QP_ERROR) {
		assert_true(aw_now_ns() - start < SOON_NS);
		sched_yield();
	}
	assert_int_equal(peer_error(p), AW_E_RDMAP_STREAM_CATASTROPHIC);
	end_wait_event(&p->e, AW_UQP_CLOSED);
	end_wait_event(&p->e, AW_UQP_REQ_ERR);
	peer_part(p);
}

static void hold(struct peer *p)
{
	peer_put_send(p, 300);
	end_wait_held(&p->e);
}

/* At either end, in either persona. */
static void each_breaks(void (*act)(struct peer *p))
{
	struct peer p;

	for (int i = 0; i < 4; i++) {
		join(&p, i & 1, i & 2);
		peer_move(&p);
		act(&p);
		assert_ends(&p);
	}
}

/* The second message at the latest shows the QP that the peer's head cannot be: it looks at it once in a page. */
static void post_two(struct peer *p)
{
	end_post(&p->e, AW_OP_SEND, &p->e, PAGE_OCTETS);
	end_post(&p->e, AW_OP_SEND, &p->e, PAGE_OCTETS);
}

static void break_head_of_held(struct peer *p)
{
	hold(p);
	break_head(p);
	post_two(p);
}

static void broken__a_head_while_the_stream_is_held(void **state)
{
	(void)state;
	each_breaks(break_head_of_held);
}

static void broken__a_tail(void **state)
{
	(void)state;
	each_breaks(break_tail);
}

/* The held message is the program's, and the QP looks at the tail behind it. */
static void break_tail_behind_held(struct peer *p)
{
	hold(p);
	break_tail(p);
	peer_post_recv(p, 300);
	peer_assert_received(p, 300);
}

static void broken__a_tail_behind_a_held_message(void **state)
{
	(void)state;
	each_breaks(break_tail_behind_held);
}

/* The initiator's FPDUs go through memory, and the peer's still come over TCP. */
static void broken__a_head_halfway(void **state)
{
	struct peer p;

	(void)state;
	for (int i = 0; i < 4; i++) {
		join(&p, true, i & 2);
		peer_move_halfway(&p);
		if (i & 1)
			hold(&p);
		break_head(&p);
		post_two(&p);
		assert_ends(&p);
	}
}

/* The QP waits for room, and its thread finds the broken head. */
static void broken__a_head_in_a_full_ring(void **state)
{
	struct peer p;

	(void)state;
	for (int i = 0; i < 4; i++) {
		join(&p, true, i & 2);
		if (i & 1)
			peer_move(&p);
		else
			peer_move_halfway(&p);
		end_post(&p.e, AW_OP_WRITE, &p.e, BUF_OCTETS);
		assert_true(end_is_full(&p.e));
		break_head(&p);
		if (i & 1)
			peer_ring_bells(&p, 1);
		else
			end_post(&p.e, AW_OP_SEND, &p.e, 1);
		assert_ends(&p);
	}
}

/* The peer has ended its direction, and the QP still has bytes to send. */
static void broken__a_head_behind_the_peers_end(void **state)
{
	struct peer p;

	(void)state;
	join(&p, true, false);
	peer_move(&p);
	end_post(&p.e, AW_OP_WRITE, &p.e, BUF_OCTETS);
	assert_true(end_is_full(&p.e));
	aw_duplex_close(&p.ring->duplex);
	peer_ring_bells(&p, 1);
	end_wait_event(&p.e, AW_UQP_CLOSED);
	break_head(&p);
	peer_ring_bells(&p, 1);
	assert_ends(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(broken__a_head_while_the_stream_is_held),
		cmocka_unit_test(broken__a_tail),
		cmocka_unit_test(broken__a_tail_behind_a_held_message),
		cmocka_unit_test(broken__a_head_halfway),
		cmocka_unit_test(broken__a_head_in_a_full_ring),
		cmocka_unit_test(broken__a_head_behind_the_peers_end),
	};

	setenv("ANYWARP_HOST_PATH", "on", 1);
	return cmocka_run_group_tests(tests, peer_setup, peer_teardown);
}
