// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The Flush as it goes out: the request of ours, in which order and when; the peer's executed once,
// at once or in the driver's own time, while the stream goes on.
#include "../lib/core_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define AT 800 /* where in the responder's mem */

static struct core_pair *placing_pair(void)
{
	struct core_pair *pair = core_pair_ready(1448);

	pair->a.qp.stream.extensions = pair->b.qp.stream.extensions = true;
	pair->a.qp.stream.placement = pair->b.qp.stream.placement = true;
	return pair;
}

static struct aw_swqe *fill(struct core_end *end, uint8_t type, uint8_t level, uint64_t len)
{
	struct aw_swqe *wqe = core_wr(end, AW_OP_FLUSH, 0, 0);

	assert_non_null(wqe);
	wqe->to = CORE_IOVA + AT;
	wqe->access = type;
	wqe->swap = level;
	wqe->compare_add = len;
	return wqe;
}

static void post(struct core_end *end, uint8_t type)
{
	fill(end, type, RDMAP_FLUSH_RANGE, 100);
	aw_qp_post(&end->qp);
}

static void flush_request__octets(void **state)
{
	static const uint8_t golden[RDMAP_FLUSH_REQ_LEN] = {
		0, 0, 3,    1, /* both types, the whole MR */
		0, 0, 0x70, 0, /* identifier */
		0, 0, 0x51, 0, 0, 0, 0, 0, 0, 1, 3, 0x20, /* target */
		0, 0, 0,    5, 0, 0, 0, 6, /* more than 32 bits */
	};
	struct core_end *end = core_initiator(1448);
	struct ddp_hdr hdr;
	const uint8_t *p;
	size_t len;

	(void)state;
	end->qp.stream.extensions = end->qp.stream.placement = true;
	fill(end, RDMAP_FLUSH_TYPES, RDMAP_FLUSH_MR, UINT64_C(0x500000006));
	aw_qp_post(&end->qp);
	assert_true(core_tx_one(end));
	p = core_peek(end, &hdr, &len);
	assert_int_equal(hdr.ulp_ctrl, 0x4c);
	assert_int_equal(hdr.qn, DDP_QN_READ);
	assert_int_equal(hdr.msn, 1);
	assert_true(hdr.last && !hdr.tagged);
	assert_int_equal(len, sizeof(golden));
	assert_memory_equal(p, golden, len);
	assert_int_equal(end->logged, 0); /* not before its response */
	core_end_destroy(end);
}

static void flush__end_to_end(void **state)
{
	static const struct {
		uint8_t type, level;
		uint32_t at, len; /* as they are executed */
	} cases[] = {
		{ RDMAP_FLUSH_GLOBAL, RDMAP_FLUSH_RANGE, AT, 100 },
		{ RDMAP_FLUSH_PERSISTENT, RDMAP_FLUSH_RANGE, AT, 100 },
		{ RDMAP_FLUSH_TYPES, RDMAP_FLUSH_MR, 0, CORE_MEM },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_pair *pair = placing_pair();

		fill(&pair->a, cases[i].type, cases[i].level, 100);
		aw_qp_post(&pair->a.qp);
		core_pump(pair);
		core_expect_sq(&pair->a, AW_OP_FLUSH, AW_WC_SUCCESS);
		assert_int_equal(pair->a.log[0].cqe.byte_len, 0);
		assert_int_equal(pair->b.write_backs, 1);
		assert_int_equal(pair->b.write_back.at, cases[i].at);
		assert_int_equal(pair->b.write_back.len, cases[i].len);
		assert_int_equal(pair->b.write_back.persistent,
				 cases[i].type != RDMAP_FLUSH_GLOBAL);
		core_pair_destroy(pair);
	}
}

/* ORD bounds Flushes with Reads; a fence waits for them. */
static void flush__waits_for_ord_and_fence(void **state)
{
	struct core_pair *pair = placing_pair();

	(void)state;
	core_recv(&pair->b, 1, 2000, 100);
	core_post(&pair->a, AW_OP_READ, 1000, 10, 0);
	for (uint32_t i = 0; i < CORE_READS + 1; i++)
		post(&pair->a, RDMAP_FLUSH_GLOBAL);
	core_wr(&pair->a, AW_OP_SEND, 0, 8)->flags |= AW_WR_FENCE;
	aw_qp_post(&pair->a.qp);
	core_tx(&pair->a);
	assert_int_equal(pair->a.qp.orq_count, CORE_READS);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
	for (uint32_t i = 0; i < CORE_READS + 1; i++)
		core_expect_sq(&pair->a, AW_OP_FLUSH, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_SEND, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

/* While the driver writes back, answers wait behind the Flush, and nothing else does. */
static void flush_response__later(void **state)
{
	struct core_pair *pair = placing_pair();

	(void)state;
	pair->b.written = AW_WRITING;
	core_recv(&pair->a, 1, 2000, 100);
	core_recv(&pair->a, 2, 2000, 100);
	post(&pair->a, RDMAP_FLUSH_PERSISTENT);
	core_post(&pair->a, AW_OP_READ, 1000, 10, 0);
	core_pump(pair);
	assert_int_equal(pair->b.write_backs, 1);
	assert_true(aw_tx_is_idle(&pair->b.qp));
	core_post(&pair->b, AW_OP_SEND, 0, 8, 0);
	core_post(&pair->b, AW_OP_SEND, 0, 8, 0);
	core_pump(pair);
	core_expect_sq(&pair->b, AW_OP_SEND, AW_WC_SUCCESS);
	core_expect_sq(&pair->b, AW_OP_SEND, AW_WC_SUCCESS);
	assert_int_equal(pair->a.qp.orq_count, 2);
	aw_qp_written_back(&pair->b.qp, true);
	core_pump(pair);
	assert_int_equal(pair->b.write_backs, 1);
	assert_int_equal(pair->a.qp.orq_count, 0);
	core_pair_destroy(pair);
}

/* A close waits for it, as for any answer. */
static void flush_response__close_waits(void **state)
{
	struct core_pair *pair = placing_pair();

	(void)state;
	pair->b.written = AW_WRITING;
	post(&pair->a, RDMAP_FLUSH_PERSISTENT);
	core_pump(pair);
	aw_qp_close(&pair->b.qp);
	core_tx(&pair->b);
	assert_false(aw_qp_tx_finished(&pair->b.qp));
	aw_qp_written_back(&pair->b.qp, true);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_FLUSH, AW_WC_SUCCESS);
	assert_true(aw_qp_tx_finished(&pair->b.qp));
	core_pair_destroy(pair);
}

/* What cannot be written is never answered: at once, or once it was tried. */
static void flush_response__unwritten(void **state)
{
	(void)state;
	for (int later = 0; later < 2; later++) {
		struct core_pair *pair = placing_pair();

		pair->b.written = later ? AW_WRITING : AW_UNWRITTEN;
		post(&pair->a, RDMAP_FLUSH_PERSISTENT);
		core_pump(pair);
		if (later)
			aw_qp_written_back(&pair->b.qp, false);
		core_pump(pair);
		assert_int_equal(pair->b.qp.error, AW_E_RDMAP_STREAM_CATASTROPHIC);
		assert_int_equal(pair->b.qp.refusal.cause, AW_REFUSAL_NONE);
		core_expect_sq(&pair->a, AW_OP_FLUSH, AW_WC_REM_OP_ERR);
		core_pair_destroy(pair);
	}
}

/* The stream may be over by the time that the driver is done. */
static void aw_qp_written_back__too_late(void **state)
{
	struct core_pair *pair = placing_pair();

	(void)state;
	pair->b.written = AW_WRITING;
	post(&pair->a, RDMAP_FLUSH_PERSISTENT);
	core_pump(pair);
	aw_qp_terminate(&pair->b.qp, AW_E_LOCAL_CATASTROPHIC);
	core_pump(pair);
	aw_qp_written_back(&pair->b.qp, true);
	core_pump(pair);
	assert_int_equal(core_cqe(&pair->a)->cqe.status, AW_WC_WR_FLUSH_ERR);
	core_pair_destroy(pair);
}

/* Checked again when its turn comes. */
static void flush_response__right_taken_back(void **state)
{
	struct core_pair *pair = placing_pair();

	(void)state;
	pair->b.written = AW_WRITING;
	post(&pair->a, RDMAP_FLUSH_PERSISTENT);
	post(&pair->a, RDMAP_FLUSH_GLOBAL);
	core_pump(pair);
	pair->b.mr[0].access &= ~(uint32_t)AW_ACCESS_FLUSH_GLOBAL;
	aw_qp_written_back(&pair->b.qp, true);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_FLUSH, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_FLUSH, AW_WC_REM_ACCESS_ERR);
	assert_int_equal(pair->b.qp.refusal.cause, AW_REFUSAL_MR_RIGHTS);
	core_pair_destroy(pair);
}

static void flush__refused_by_the_peer(void **state)
{
	static const struct {
		uint8_t type, level;
		uint32_t stag;
		uint64_t to, len;
		enum aw_wc_status status;
	} cases[] = {
		{ RDMAP_FLUSH_GLOBAL, RDMAP_FLUSH_RANGE, CORE_STAG, 0, CORE_MEM, AW_WC_SUCCESS },
		{ RDMAP_FLUSH_GLOBAL, RDMAP_FLUSH_RANGE, CORE_STAG, 0, CORE_MEM + 1,
		  AW_WC_REM_ACCESS_ERR },
		{ RDMAP_FLUSH_GLOBAL, RDMAP_FLUSH_RANGE, CORE_STAG, 1, CORE_MEM,
		  AW_WC_REM_ACCESS_ERR },
		{ RDMAP_FLUSH_GLOBAL, RDMAP_FLUSH_RANGE, CORE_STAG, 1, UINT64_MAX,
		  AW_WC_REM_ACCESS_ERR },
		/* Of a whole MR the range means nothing. */
		{ RDMAP_FLUSH_GLOBAL, RDMAP_FLUSH_MR, CORE_STAG, 1, UINT64_MAX, AW_WC_SUCCESS },
		{ RDMAP_FLUSH_GLOBAL, RDMAP_FLUSH_MR, 0xbad, 0, 0, AW_WC_REM_ACCESS_ERR },
		{ RDMAP_FLUSH_PERSISTENT, RDMAP_FLUSH_MR, 0x98, 0, 0, AW_WC_REM_ACCESS_ERR },
		{ RDMAP_FLUSH_GLOBAL, RDMAP_FLUSH_MR, 0x98, 0, 0, AW_WC_SUCCESS },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_pair *pair = placing_pair();
		struct aw_swqe *wqe;

		core_mr_add(&pair->b, 0x98, ~(uint32_t)AW_ACCESS_FLUSH_PERSISTENT, 0, 100);
		wqe = fill(&pair->a, cases[i].type, cases[i].level, cases[i].len);
		wqe->stag = cases[i].stag;
		wqe->to = CORE_IOVA + cases[i].to;
		aw_qp_post(&pair->a.qp);
		core_pump(pair);
		core_expect_sq(&pair->a, AW_OP_FLUSH, cases[i].status);
		assert_int_equal(pair->b.write_backs, cases[i].status == AW_WC_SUCCESS);
		core_pair_destroy(pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flush_request__octets),
		cmocka_unit_test(flush__end_to_end),
		cmocka_unit_test(flush__waits_for_ord_and_fence),
		cmocka_unit_test(flush_response__later),
		cmocka_unit_test(flush_response__close_waits),
		cmocka_unit_test(flush_response__unwritten),
		cmocka_unit_test(aw_qp_written_back__too_late),
		cmocka_unit_test(flush_response__right_taken_back),
		cmocka_unit_test(flush__refused_by_the_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
