// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completions that wait until the peer has processed what was sent.
#include "../lib/core_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct core_pair *pair_with(uint32_t ord)
{
	struct aw_stream a = core_stream(true, 1448), b = core_stream(false, 1448);
	struct core_pair *pair = core_pair_create(NULL, NULL);

	a.ord = ord;
	pair->a.qp.acks = true;
	aw_qp_start(&pair->a.qp, &a);
	aw_qp_start(&pair->b.qp, &b);
	pair->b.qp.peer_ready = true;
	return pair;
}

static void ack__write_waits_for_the_answer(void **state)
{
	struct core_pair *pair = pair_with(CORE_READS);

	(void)state;
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_tx(&pair->a);
	assert_int_equal(pair->a.logged, 0);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

/* One request behind the burst, not one for each. */
static void ack__one_for_all(void **state)
{
	struct core_pair *pair = pair_with(CORE_READS);

	(void)state;
	for (int i = 0; i < 5; i++)
		core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_tx(&pair->a);
	assert_int_equal(pair->a.qp.orq_count, 1);
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_tx(&pair->a);
	assert_int_equal(pair->a.qp.orq_count, 1);
	core_pump(pair);
	for (int i = 0; i < 6; i++)
		core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

/* A Read of the program's says as much. */
static void ack__read_is_one(void **state)
{
	struct core_pair *pair = pair_with(CORE_READS);

	(void)state;
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_post(&pair->a, AW_OP_READ, 0, 10, 0);
	core_tx(&pair->a);
	assert_int_equal(pair->a.qp.orq_count, 1);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

static void ack__unsignalled_asks_for_none(void **state)
{
	struct core_pair *pair = pair_with(CORE_READS);
	struct aw_swqe *wqe = core_wr(&pair->a, AW_OP_WRITE, 0, 10);

	(void)state;
	wqe->flags = 0;
	aw_qp_post(&pair->a.qp);
	core_tx(&pair->a);
	assert_int_equal(pair->a.qp.orq_count, 0);
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	assert_null(core_cqe(&pair->a));
	core_pair_destroy(pair);
}

/* The slots of a queue that signals nothing come back all the same. */
static void ack__unsignalled_fill_the_queue(void **state)
{
	struct core_pair *pair = pair_with(CORE_READS);

	(void)state;
	for (int i = 0; i < 4 * CORE_SQ; i++) {
		struct aw_swqe *wqe = core_wr(&pair->a, AW_OP_WRITE, 0, 10);

		assert_non_null(wqe);
		wqe->flags = 0;
		aw_qp_post(&pair->a.qp);
		core_pump(pair);
	}
	core_pair_destroy(pair);
}

/* No Read may be outstanding: TCP's word has to do. */
static void ack__not_without_depth(void **state)
{
	struct core_pair *pair = pair_with(0);

	(void)state;
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_tx(&pair->a);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

/* Its Terminate names no message. */
static void ack__peer_fails_by_itself(void **state)
{
	struct core_pair *pair = pair_with(CORE_READS);

	(void)state;
	core_post(&pair->a, AW_OP_SEND, 0, 10, 0);
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_tx(&pair->a);
	aw_qp_terminate(&pair->b.qp, AW_E_LOCAL_CATASTROPHIC);
	core_tx(&pair->b);
	core_deliver(&pair->b, &pair->a);
	core_expect_sq(&pair->a, AW_OP_SEND, AW_WC_REM_OP_ERR);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_WR_FLUSH_ERR);
	core_pair_destroy(pair);
}

static void ack__none_comes_any_more(void **state)
{
	struct core_pair *pair = pair_with(CORE_READS);

	(void)state;
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_tx(&pair->a);
	aw_qp_taken(&pair->a.qp);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ack__write_waits_for_the_answer),
		cmocka_unit_test(ack__one_for_all),
		cmocka_unit_test(ack__read_is_one),
		cmocka_unit_test(ack__unsignalled_asks_for_none),
		cmocka_unit_test(ack__unsignalled_fill_the_queue),
		cmocka_unit_test(ack__not_without_depth),
		cmocka_unit_test(ack__peer_fails_by_itself),
		cmocka_unit_test(ack__none_comes_any_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
