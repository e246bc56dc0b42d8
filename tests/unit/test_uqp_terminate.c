// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A Terminate that comes behind answers (core/ack.h): the peer hears it though it takes those too slowly, or the
// program does not wait for that.
#include "../lib/until.h"
#include "../lib/uqp_pair.h"
#include "net/qp/cq_poll.h"
#include "net/qp/uqp_progress.h"
#include "net/qp/uqp_sock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Nothing moves, and no deadline is met, unless a test says so. */
static int setup(void **state)
{
	int err = pair_setup(state);

	pair_stop_progress();
	return err;
}

/* a's program does not take the answer to its Read, b fails meanwhile, and its socket is full. */
static void fail_behind_answer(struct pair *p)
{
	struct aw_uqp *b = p->b.qp;

	b->core.acks = true;
	end_post(&p->a, AW_OP_READ, &p->b, BUF_OCTETS);
	repeat_until(b->tx_blocked)
	{
		uqp_poll(b);
	}
	aw_lock(&b->lock);
	aw_qp_terminate(&b->core, AW_E_LOCAL_CATASTROPHIC);
	aw_uqp_serve(b);
	aw_unlock(&b->lock);
	assert_int_equal(b->core.state, AW_QP_TERMINATE);
	assert_true(b->core.irq_count > 0 && b->core.term_due);
}

/* The Read, of which only a part came, is flushed; b is served where it still has a socket. */
static void expect_terminate(struct pair *p)
{
	struct aw_cq_entry entry;

	repeat_until(aw_cq_poll(&p->a.cq, &entry, 1) != 0)
	{
		uqp_poll(p->b.qp);
	}
	assert_int_not_equal(entry.cqe.status, AW_WC_SUCCESS);
	assert_int_equal(p->a.qp->core.peer_error, AW_E_LOCAL_CATASTROPHIC);
}

static void terminate__is_heard_by_a_slow_peer(void **state)
{
	struct pair *p = *state;

	fail_behind_answer(p);
	p->b.qp->ending.deadline_ns = 0;
	aw_uqp_on_deadline(p->b.qp->handle);
	expect_terminate(p);
}

/* No peer has more time than twice as much. */
static void terminate__is_not_for_ever(void **state)
{
	struct pair *p = *state;

	fail_behind_answer(p);
	p->b.qp->ending.deadline_ns = 0;
	aw_uqp_on_deadline(p->b.qp->handle);
	assert_int_equal(aw_uqp_state(p->b.qp), AW_QP_TERMINATE);
	p->b.qp->ending.deadline_ns = 0;
	aw_uqp_on_deadline(p->b.qp->handle);
	assert_int_equal(aw_uqp_state(p->b.qp), AW_QP_ERROR);
}

/* The socket has room again, and b's program does something else. */
static void end_behind_answer(struct pair *p, void (*end)(struct aw_uqp *qp))
{
	struct aw_cq_entry entry;

	fail_behind_answer(p);
	for (int i = 0; i < 100; i++)
		assert_int_equal(aw_cq_poll(&p->a.cq, &entry, 1), 0);
	end(p->b.qp);
	expect_terminate(p);
}

static void terminate__leaves_before_the_reset(void **state)
{
	end_behind_answer(*state, aw_uqp_reset);
}

static void terminate__leaves_before_the_abort(void **state)
{
	end_behind_answer(*state, aw_uqp_abort);
}

static struct end *ended;

static void destroy_and_remake(struct aw_uqp *qp)
{
	const void *pd = qp->attr.pd;

	end_destroy(ended);
	end_make(ended, pd, NULL);
}

static void terminate__leaves_before_the_destruction(void **state)
{
	struct pair *p = *state;

	ended = &p->b;
	end_behind_answer(p, destroy_and_remake);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, pair_teardown_stopped)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(terminate__is_heard_by_a_slow_peer),
		CASE(terminate__is_not_for_ever),
		CASE(terminate__leaves_before_the_reset),
		CASE(terminate__leaves_before_the_abort),
		CASE(terminate__leaves_before_the_destruction),
	};

	return cmocka_run_group_tests_name("uqp_terminate", tests, NULL, NULL);
}
