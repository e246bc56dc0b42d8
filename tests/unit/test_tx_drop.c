// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a UC QP does with posts that have no stream: they complete as if they had been sent.
#include "../lib/core_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct core_end *uc_end(bool started)
{
	struct aw_stream stream = core_stream(true, 1448);
	struct core_end *end = core_end_create(started ? &stream : NULL);

	end->qp.unreliable = end->qp.posts_early = true;
	return end;
}

static void post_all(struct core_end *end)
{
	core_post(end, AW_OP_SEND, 0, 10, 0);
	core_post(end, AW_OP_WRITE_IMM, 0, 5000, 0);
	core_post(end, AW_OP_BIND_MW, 0, 0, 0);
	core_post(end, AW_OP_SEND_IMM, 0, 5000, 0);
	core_post(end, AW_OP_WRITE, 0, 10, 0);
}

static void expect_all(struct core_end *end)
{
	core_expect_sq(end, AW_OP_SEND, AW_WC_SUCCESS);
	core_expect_sq(end, AW_OP_WRITE_IMM, AW_WC_SUCCESS);
	core_expect_sq(end, AW_OP_BIND_MW, AW_WC_SUCCESS);
	core_expect_sq(end, AW_OP_SEND_IMM, AW_WC_SUCCESS);
	core_expect_sq(end, AW_OP_WRITE, AW_WC_SUCCESS);
	assert_null(core_cqe(end));
}

/* A window is bound all the same. */
static void aw_tx_drop__before_any_stream(void **state)
{
	struct core_end *end = uc_end(false);

	(void)state;
	post_all(end);
	assert_int_equal(end->logged, 0);
	aw_tx_drop(&end->qp);
	expect_all(end);
	assert_int_equal(end->binds, 1);
	assert_int_equal(end->qp.state, AW_QP_IDLE);
	core_end_destroy(end);
}

/* The stream is lost within a message; octets of it were given out that TCP has not taken. */
static void aw_tx_drop__of_a_stream_within_a_message(void **state)
{
	struct core_end *end = uc_end(true);
	struct aw_tx_out out = {
		.arena = end->arena,
		.arena_len = sizeof(end->arena),
		.iov = end->iov,
		.iov_max = sizeof(end->iov) / sizeof(end->iov[0]),
	};

	(void)state;
	end->qp.stream.extensions = true;
	post_all(end);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	assert_true(end->qp.tx_begun);
	assert_int_equal(end->logged, 0);
	aw_tx_drop(&end->qp);
	expect_all(end);
	assert_int_equal(end->qp.state, AW_QP_RTS);
	aw_qp_recall(&end->qp);
	post_all(end);
	aw_tx_drop(&end->qp);
	expect_all(end);
	core_end_destroy(end);
}

/* In SQD only what was begun. */
static void aw_tx_drop__of_a_queue_that_halts(void **state)
{
	struct core_end *end = uc_end(true);

	(void)state;
	core_post(end, AW_OP_SEND, 0, 5000, 0);
	assert_true(core_tx_one(end));
	core_post(end, AW_OP_WRITE, 0, 10, 0);
	end->qp.sq_halts = true;
	aw_tx_drop(&end->qp);
	core_expect_sq(end, AW_OP_SEND, AW_WC_SUCCESS);
	assert_null(core_cqe(end));
	end->qp.sq_halts = false;
	aw_tx_drop(&end->qp);
	core_expect_sq(end, AW_OP_WRITE, AW_WC_SUCCESS);
	core_end_destroy(end);
}

/* What this end's own memory fails is no loss on the way. */
static void aw_tx_drop__of_a_bad_lkey(void **state)
{
	struct core_end *end = uc_end(false);

	(void)state;
	core_post(end, AW_OP_SEND, 0, 10, 0);
	core_wr(end, AW_OP_WRITE, 0, 10)->sge[0].lkey = 0xbad;
	aw_qp_post(&end->qp);
	core_post(end, AW_OP_SEND, 0, 10, 0);
	aw_tx_drop(&end->qp);
	core_expect_sq(end, AW_OP_SEND, AW_WC_SUCCESS);
	core_expect_sq(end, AW_OP_WRITE, AW_WC_LOC_PROT_ERR);
	core_expect_sq(end, AW_OP_SEND, AW_WC_WR_FLUSH_ERR);
	assert_int_equal(end->qp.state, AW_QP_ERROR);
	aw_tx_drop(&end->qp);
	assert_null(core_cqe(end));
	core_end_destroy(end);
}

static void aw_tx_drop__of_a_bind_that_fails(void **state)
{
	struct core_end *end = uc_end(false);

	(void)state;
	end->bind_status = AW_WC_MW_BIND_ERR;
	core_post(end, AW_OP_BIND_MW, 0, 0, 0);
	aw_tx_drop(&end->qp);
	core_expect_sq(end, AW_OP_BIND_MW, AW_WC_MW_BIND_ERR);
	assert_int_equal(end->qp.state, AW_QP_ERROR);
	core_end_destroy(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_tx_drop__before_any_stream),
		cmocka_unit_test(aw_tx_drop__of_a_stream_within_a_message),
		cmocka_unit_test(aw_tx_drop__of_a_queue_that_halts),
		cmocka_unit_test(aw_tx_drop__of_a_bad_lkey),
		cmocka_unit_test(aw_tx_drop__of_a_bind_that_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
