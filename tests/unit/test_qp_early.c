// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP whose program posts before there is a stream: what waits goes out in order, or fails; and a
// stream that was never used makes room for another one.
#include "../lib/core_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct core_pair *pair_in_idle(void)
{
	struct core_pair *pair = core_pair_create(NULL, NULL);

	pair->a.qp.posts_early = pair->b.qp.posts_early = true;
	return pair;
}

/* With the ready-to-receive message that lets either end send first. */
static void start(struct core_pair *pair)
{
	struct aw_stream a = core_stream(true, 1448), b = core_stream(false, 1448);

	a.p2p = b.p2p = true;
	a.rtr = MPA_RTR_WRITE;
	b.rtr = MPA_RTR_WRITE;
	aw_qp_start(&pair->a.qp, &a);
	aw_qp_start(&pair->b.qp, &b);
}

static void expect_recv(struct core_end *end, uint64_t wr_id)
{
	const struct core_cqe *c = core_cqe(end);

	assert_non_null(c);
	assert_int_equal(c->queue, AW_RQ);
	assert_int_equal(c->cqe.wr_id, wr_id);
	assert_int_equal(c->cqe.status, AW_WC_SUCCESS);
}

static void aw_qp_post__in_idle_waits_for_the_start(void **state)
{
	struct core_pair *pair = pair_in_idle();

	(void)state;
	core_recv(&pair->b, 1, 0, 10);
	core_recv(&pair->a, 2, 0, 10);
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_post(&pair->a, AW_OP_SEND, 0, 10, 0);
	core_post(&pair->b, AW_OP_SEND, 0, 10, 0);
	core_pump(pair);
	assert_int_equal(pair->a.logged + pair->b.logged, 0);
	start(pair);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_SEND, AW_WC_SUCCESS);
	expect_recv(&pair->a, 2);
	expect_recv(&pair->b, 1);
	core_expect_sq(&pair->b, AW_OP_SEND, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

static void aw_qp_give_up__the_first_fails_the_others_flush(void **state)
{
	struct core_end *end = core_end_create(NULL);

	(void)state;
	end->qp.posts_early = true;
	core_post(end, AW_OP_WRITE, 0, 10, 0);
	core_post(end, AW_OP_SEND, 0, 10, 0);
	aw_qp_give_up(&end->qp, AW_WC_RETRY_EXC_ERR);
	assert_int_equal(end->qp.state, AW_QP_ERROR);
	core_expect_sq(end, AW_OP_WRITE, AW_WC_RETRY_EXC_ERR);
	core_expect_sq(end, AW_OP_SEND, AW_WC_WR_FLUSH_ERR);
	core_post(end, AW_OP_SEND, 0, 10, 0);
	core_expect_sq(end, AW_OP_SEND, AW_WC_WR_FLUSH_ERR);
	core_end_destroy(end);
}

/* A Read that nobody answers, and a Send behind it that TCP took. */
static void aw_qp_give_up__of_a_stream(void **state)
{
	struct core_end *end = core_initiator(1448);

	(void)state;
	core_post(end, AW_OP_READ, 0, 10, 0);
	core_post(end, AW_OP_SEND, 0, 10, 0);
	core_tx(end);
	assert_int_equal(end->logged, 0);
	aw_qp_give_up(&end->qp, AW_WC_RETRY_EXC_ERR);
	core_expect_sq(end, AW_OP_READ, AW_WC_RETRY_EXC_ERR);
	core_expect_sq(end, AW_OP_SEND, AW_WC_WR_FLUSH_ERR);
	core_end_destroy(end);
}

static void aw_qp_give_up__with_nothing_posted(void **state)
{
	struct core_end *end = core_end_create(NULL);

	(void)state;
	aw_qp_give_up(&end->qp, AW_WC_RETRY_EXC_ERR);
	assert_int_equal(end->qp.state, AW_QP_ERROR);
	assert_int_equal(end->logged, 0);
	core_end_destroy(end);
}

/* The RTR went out and came in; then the next stream counts from its own beginning. */
static void aw_qp_recall__another_stream_starts_afresh(void **state)
{
	struct core_pair *pair = pair_in_idle();

	(void)state;
	start(pair);
	core_pump(pair);
	assert_true(pair->b.qp.peer_ready);
	aw_qp_recall(&pair->a.qp);
	aw_qp_recall(&pair->b.qp);
	assert_int_equal(pair->a.qp.state, AW_QP_IDLE);
	assert_false(pair->b.qp.peer_ready);
	core_recv(&pair->a, 1, 0, 10);
	core_recv(&pair->b, 2, 0, 10);
	core_post(&pair->a, AW_OP_SEND, 0, 10, 0);
	core_post(&pair->b, AW_OP_SEND, 0, 10, 0);
	core_post(&pair->b, AW_OP_READ, 0, 10, 0);
	start(pair);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_SEND, AW_WC_SUCCESS);
	expect_recv(&pair->a, 1);
	expect_recv(&pair->b, 2);
	core_expect_sq(&pair->b, AW_OP_SEND, AW_WC_SUCCESS);
	core_expect_sq(&pair->b, AW_OP_READ, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_qp_post__in_idle_waits_for_the_start),
		cmocka_unit_test(aw_qp_give_up__the_first_fails_the_others_flush),
		cmocka_unit_test(aw_qp_give_up__of_a_stream),
		cmocka_unit_test(aw_qp_give_up__with_nothing_posted),
		cmocka_unit_test(aw_qp_recall__another_stream_starts_afresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
