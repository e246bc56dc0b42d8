// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An acknowledgement waits for the post of a program that answers what it finds, and for nothing else.
#include "walk.h"

#include "net/progress/engine.h"
#include "net/qp/uqp.h"
#include "net/roce/qpn.h"

enum {
	TRIPS = 20000, /* far more than it takes */
	VAIN = 32, /* polls that make the progress thread leave a QP to them */
	ONE_WAY = 2000, /* messages that nobody answers */
};

static struct aw_ack_credit ack_of(const struct walker *w, uint32_t given)
{
	struct aw_uqp *uqp = aw_qpn_get(w->qp->qp_num);

	aw_lock(&uqp->lock);
	if (given)
		uqp->deferral.ack.credits = given;
	struct aw_ack_credit ack = uqp->deferral.ack;

	aw_unlock(&uqp->lock);
	aw_uqp_put(uqp);
	return ack;
}

static bool waits(const struct walker *w)
{
	return ack_of(w, 0).waits;
}

static void poll_in_vain(const struct walker *w)
{
	struct ibv_wc wc;

	assert_int_equal(ibv_poll_cq(w->recv_cq, 1, &wc), 0);
}

/* a's message is with b's program. */
static void ask(struct two *t)
{
	walker_recv(&t->a, 1);
	walker_recv(&t->b, 1);
	for (int i = 0; i < VAIN; i++) {
		poll_in_vain(&t->a);
		poll_in_vain(&t->b);
	}
	walker_post(&t->a, IBV_WR_SEND, 16, NULL);
	walker_received(&t->b, IBV_WC_SUCCESS);
}

/* All is acknowledged: of b's message by a's polling in vain. */
static void answer(struct two *t)
{
	struct ibv_wc wc;

	walker_post(&t->b, IBV_WR_SEND, 16, NULL);
	walker_received(&t->a, IBV_WC_SUCCESS);
	walker_sent(&t->a, IBV_WC_SUCCESS);
	while (ibv_poll_cq(t->b.send_cq, 1, &wc) == 0)
		poll_in_vain(&t->a);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/*
 * Until b, which is given what it may have earned, holds an acknowledgement, and the progress thread is held as
 * well: under a sanitizer a post seldom comes in time.
 */
static void make_wait(struct two *t, void **state)
{
	two_connect(t, *state);
	for (int i = 0; i < TRIPS; i++) {
		ack_of(&t->b, AW_CREDIT_MAX);
		ask(t);
		aw_engine_fork_prepare();
		if (waits(&t->b))
			return;
		aw_engine_fork_done();
		answer(t);
	}
	fail_msg("no acknowledgement ever waited");
}

static void end(struct two *t)
{
	aw_engine_fork_done();
	two_destroy(t);
}

static void ack__is_earned(void **state)
{
	int trips = 0;
	struct two t;

	two_connect(&t, *state);
	while (ack_of(&t.b, 0).credits == 0 && trips++ < TRIPS) {
		ask(&t);
		answer(&t);
	}
	assert_true(trips < TRIPS);
	two_destroy(&t);
}

/* One system call has both: a finds its completion and the message at one poll. */
static void ack__with_the_answer(void **state)
{
	struct ibv_wc wc;
	struct two t;

	make_wait(&t, state);
	assert_int_equal(ibv_poll_cq(t.a.send_cq, 1, &wc), 0);
	walker_post(&t.b, IBV_WR_SEND, 16, NULL);
	assert_false(waits(&t.b));
	walker_sent(&t.a, IBV_WC_SUCCESS);
	assert_int_equal(ibv_poll_cq(t.a.recv_cq, 1, &wc), 1);
	end(&t);
}

static void ack__no_longer_than_a_poll_in_vain(void **state)
{
	struct two t;

	make_wait(&t, state);
	poll_in_vain(&t.b);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	end(&t);
}

static void ack__not_while_the_program_may_sleep(void **state)
{
	struct two t;

	make_wait(&t, state);
	assert_int_equal(ibv_req_notify_cq(t.b.recv_cq, 0), 0);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	end(&t);
}

static void ack__ends_with_the_qp(void **state)
{
	struct two t;

	make_wait(&t, state);
	assert_int_equal(qp_move(t.b.qp, IBV_QPS_ERR), 0);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	end(&t);
}

/* An adapter has received what has come before its program moves the QP: the peer hears of that as well. */
static void ack__not_beyond_an_error(void **state)
{
	struct ibv_wc wc;
	struct two t;

	two_connect(&t, *state);
	two_talk(&t);
	walker_recv(&t.b, 1);
	walker_recv(&t.b, 1);
	aw_engine_fork_prepare();
	walker_post(&t.a, IBV_WR_SEND, 16, NULL);
	assert_int_equal(qp_move(t.b.qp, IBV_QPS_ERR), 0);
	assert_int_equal(ibv_poll_cq(t.b.recv_cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_poll_cq(t.b.recv_cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	walker_sent(&t.a, IBV_WC_SUCCESS);
	end(&t);
}

/* Nobody polls b any more. */
static void ack__the_progress_thread_sends_it(void **state)
{
	struct two t;

	make_wait(&t, state);
	aw_engine_fork_done();
	walker_sent(&t.a, IBV_WC_SUCCESS);
	two_destroy(&t);
}

/* Who only takes what comes is never waited for, though its credits were plenty. */
static void ack__not_where_nothing_is_answered(void **state)
{
	struct two t;

	make_wait(&t, state);
	aw_engine_fork_done();
	answer(&t);
	for (int i = 0; i < ONE_WAY; i++) {
		ask(&t);
		poll_in_vain(&t.b);
		walker_sent(&t.a, IBV_WC_SUCCESS);
		poll_in_vain(&t.b);
		/* The receive that a posted for an answer is one more each time. */
		walker_post(&t.b, IBV_WR_SEND, 16, NULL);
		walker_received(&t.a, IBV_WC_SUCCESS);
		walker_sent(&t.b, IBV_WC_SUCCESS);
	}
	ask(&t);
	assert_false(waits(&t.b));
	walker_sent(&t.a, IBV_WC_SUCCESS);
	two_destroy(&t);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH(ack__is_earned),
		WITH(ack__with_the_answer),
		WITH(ack__no_longer_than_a_poll_in_vain),
		WITH(ack__not_while_the_program_may_sleep),
		WITH(ack__ends_with_the_qp),
		WITH(ack__not_beyond_an_error),
		WITH(ack__the_progress_thread_sends_it),
		WITH(ack__not_where_nothing_is_answered),
	};

	walk_persona();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
