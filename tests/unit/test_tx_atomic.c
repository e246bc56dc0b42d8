// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Atomics (RFC 7306 5) as they go out: the requests of ours, in which order and when; the peer's
// executed once each, in their turn, whatever happens to the batch or to the memory meanwhile.
#include "../lib/core_pair.h"

#include "wire/octets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define COUNTER 800 /* where in the responder's mem */

static struct core_pair *extended_pair(void)
{
	struct core_pair *pair = core_pair_ready(1448);

	pair->a.qp.stream.extensions = pair->b.qp.stream.extensions = true;
	return pair;
}

static struct core_end *extended_initiator(void)
{
	struct core_end *end = core_initiator(1448);

	end->qp.stream.extensions = true;
	return end;
}

static uint64_t value(const struct core_end *end, uint32_t at)
{
	uint64_t v;

	memcpy(&v, end->mem + at, sizeof(v));
	return v;
}

/* Its result goes to mem[at]. */
static struct aw_swqe *fill(struct core_end *end, enum aw_op op, uint32_t at, uint64_t compare_add)
{
	struct aw_swqe *wqe = core_wr(end, op, at, 8);

	assert_non_null(wqe);
	wqe->to = CORE_IOVA + COUNTER;
	wqe->compare_add = compare_add;
	wqe->swap = 0x5152535455565758;
	return wqe;
}

static void post(struct core_end *end, enum aw_op op, uint32_t at, uint64_t compare_add)
{
	fill(end, op, at, compare_add);
	aw_qp_post(&end->qp);
}

/* RFC 7306 figure 4 and what it says of fields that do not apply. */
static void atomic_request__octets(void **state)
{
	static const uint8_t add[RDMAP_ATOMIC_REQ_LEN] = {
		0,    0,    0,	  0,	0,    0,    0x70, 0, /* FetchAdd, identifier */
		0,    0,    0x51, 0,	0,    0,    0,	  0,	0, 0x01, 0x03, 0x20, /* target */
		0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, /* add data */
		0,    0,    0,	  0,	0,    0,    0,	  0, /* add mask: 64 bits in one */
		0,    0,    0,	  0,	0,    0,    0,	  0, /* compare data: zero */
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, /* compare mask: ones */
	};
	static const uint8_t swap[RDMAP_ATOMIC_REQ_LEN] = {
		0,    0,    0,	  2,	0,    0,    0x70, 1, /* CmpSwap, identifier */
		0,    0,    0x51, 0,	0,    0,    0,	  0,	0, 0x01, 0x03, 0x20, /* target */
		0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, /* swap data */
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, /* swap mask */
		0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, /* compare data */
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, /* compare mask */
	};
	struct core_end *end = extended_initiator();

	(void)state;
	post(end, AW_OP_FETCH_ADD, 0, 0x4142434445464748);
	post(end, AW_OP_CMP_SWAP, 0, 0x4142434445464748);
	for (uint32_t i = 0; i < 2; i++) {
		const uint8_t *p;
		struct ddp_hdr hdr;
		size_t len;

		end->wire_len = 0;
		assert_true(core_tx_one(end));
		p = core_peek(end, &hdr, &len);
		assert_int_equal(hdr.ulp_ctrl, 0x4a);
		assert_int_equal(hdr.ulp_rsvd, 0);
		assert_int_equal(hdr.qn, DDP_QN_READ);
		assert_int_equal(hdr.msn, i + 1);
		assert_int_equal(hdr.mo, 0);
		assert_true(hdr.last && !hdr.tagged);
		assert_int_equal(len, RDMAP_ATOMIC_REQ_LEN);
		assert_memory_equal(p, i ? swap : add, len);
	}
	assert_int_equal(end->logged, 0); /* not before its response */
	core_end_destroy(end);
}

static void atomic__end_to_end(void **state)
{
	struct core_pair *pair = extended_pair();

	(void)state;
	post(&pair->a, AW_OP_FETCH_ADD, 0, 30);
	post(&pair->a, AW_OP_FETCH_ADD, 8, 12);
	post(&pair->a, AW_OP_CMP_SWAP, 16, 41);
	post(&pair->a, AW_OP_CMP_SWAP, 24, 42);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_FETCH_ADD, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_FETCH_ADD, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_CMP_SWAP, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_CMP_SWAP, AW_WC_SUCCESS);
	assert_int_equal(pair->a.log[3].cqe.byte_len, 8);
	assert_int_equal(value(&pair->a, 0), 0);
	assert_int_equal(value(&pair->a, 8), 30);
	assert_int_equal(value(&pair->a, 16), 42);
	assert_int_equal(value(&pair->a, 24), 42);
	assert_int_equal(value(&pair->b, COUNTER), 0x5152535455565758);
	assert_int_equal(pair->b.executed, 4);
	core_pair_destroy(pair);
}

/* The result, over more than one SGE. */
static void atomic__scattered(void **state)
{
	struct core_pair *pair = extended_pair();
	struct aw_swqe *wqe = fill(&pair->a, AW_OP_FETCH_ADD, 0, 1);
	struct aw_sge *sge = wqe->sge; /* as many as the slot has room for */
	const uint64_t before = 0x1122334455667788;
	uint64_t got;

	(void)state;
	memcpy(pair->b.mem + COUNTER, &before, 8);
	wqe->sge_count = 3;
	sge[0] = (struct aw_sge){ CORE_IOVA + 100, 3, CORE_STAG };
	sge[1] = (struct aw_sge){ CORE_IOVA + 200, 0, CORE_STAG };
	sge[2] = (struct aw_sge){ CORE_IOVA + 300, 5, CORE_STAG };
	aw_qp_post(&pair->a.qp);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_FETCH_ADD, AW_WC_SUCCESS);
	memcpy(&got, pair->a.mem + 100, 3);
	memcpy((uint8_t *)&got + 3, pair->a.mem + 300, 5);
	assert_int_equal(got, before);
	core_pair_destroy(pair);
}

static void atomic__bad_sink(void **state)
{
	static const struct {
		uint32_t lkey, len;
		enum aw_wc_status status;
	} cases[] = {
		{ CORE_STAG, 8, AW_WC_SUCCESS },
		{ CORE_STAG, 7, AW_WC_LOC_LEN_ERR },
		{ CORE_STAG, 9, AW_WC_LOC_LEN_ERR },
		{ CORE_STAG, 0, AW_WC_LOC_LEN_ERR },
		{ 0xbad, 8, AW_WC_LOC_PROT_ERR },
		{ 0x98, 8, AW_WC_LOC_PROT_ERR }, /* no right to write */
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_pair *pair = extended_pair();
		struct aw_swqe *wqe = fill(&pair->a, AW_OP_FETCH_ADD, 0, 1);

		core_mr_add(&pair->a, 0x98, ~(uint32_t)AW_ACCESS_LOCAL_WRITE, 0, 100);
		wqe->len = wqe->sge[0].len = cases[i].len;
		wqe->sge[0].lkey = cases[i].lkey;
		aw_qp_post(&pair->a.qp);
		core_pump(pair);
		core_expect_sq(&pair->a, AW_OP_FETCH_ADD, cases[i].status);
		assert_int_equal(pair->b.executed, cases[i].status == AW_WC_SUCCESS);
		core_pair_destroy(pair);
	}
}

/* ORD bounds Reads and atomics together; the SQ waits, and goes on. */
static void atomic__waits_for_ord(void **state)
{
	struct core_pair *pair = extended_pair();

	(void)state;
	core_post(&pair->a, AW_OP_READ, 1000, 10, 0);
	for (uint32_t i = 0; i < 3 * CORE_READS; i++)
		post(&pair->a, AW_OP_FETCH_ADD, 8 * i, 1);
	core_tx(&pair->a);
	assert_int_equal(pair->a.qp.orq_count, CORE_READS);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
	for (uint32_t i = 0; i < 3 * CORE_READS; i++) {
		core_expect_sq(&pair->a, AW_OP_FETCH_ADD, AW_WC_SUCCESS);
		assert_int_equal(value(&pair->a, 8 * i), i);
	}
	assert_int_equal(value(&pair->b, COUNTER), 3 * CORE_READS);
	core_pair_destroy(pair);
}

static void atomic__no_ord(void **state)
{
	struct core_end *end = extended_initiator();

	(void)state;
	end->qp.stream.ord = 0;
	post(end, AW_OP_CMP_SWAP, 0, 1);
	core_tx(end);
	core_expect_sq(end, AW_OP_CMP_SWAP, AW_WC_LOC_QP_OP_ERR);
	core_end_destroy(end);
}

/* A fence waits for atomics as it does for Reads. */
static void atomic__fence_behind(void **state)
{
	struct core_pair *pair = extended_pair();

	(void)state;
	core_recv(&pair->b, 1, 2000, 100);
	post(&pair->a, AW_OP_FETCH_ADD, 0, 1);
	core_wr(&pair->a, AW_OP_SEND, 0, 8)->flags |= AW_WR_FENCE;
	aw_qp_post(&pair->a.qp);
	assert_true(core_tx_one(&pair->a));
	assert_false(core_tx_one(&pair->a));
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_FETCH_ADD, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_SEND, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

/* RFC 7306 7: responses come in the order of the requests, Reads and atomics among each other. */
static void atomic__in_order_with_reads(void **state)
{
	struct core_pair *pair = extended_pair();
	const uint64_t before = 99;

	(void)state;
	memcpy(pair->b.mem + COUNTER, &before, 8);
	core_post(&pair->a, AW_OP_READ, 1000, 8, COUNTER);
	post(&pair->a, AW_OP_FETCH_ADD, 0, 1);
	core_post(&pair->a, AW_OP_READ, 1008, 8, COUNTER);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_FETCH_ADD, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
	assert_int_equal(value(&pair->a, 1000), 99);
	assert_int_equal(value(&pair->a, 0), 99);
	assert_int_equal(value(&pair->a, 1008), 100);
	core_pair_destroy(pair);
}

static struct core_pair *placing_pair(void)
{
	struct core_pair *pair = extended_pair();

	pair->a.qp.stream.placement = pair->b.qp.stream.placement = true;
	return pair;
}

/* docs/extensions.md: eight octets, from SGEs or inline, as they lie. */
static void atomic_write__end_to_end(void **state)
{
	struct core_pair *pair = placing_pair();
	struct aw_swqe *wqe = fill(&pair->a, AW_OP_ATOMIC_WRITE, 0, 0);
	uint8_t *octets;

	(void)state;
	wqe->sge_count = 2;
	((struct aw_sge *)wqe->sge)[0] = (struct aw_sge){ CORE_IOVA + 100, 3, CORE_STAG };
	((struct aw_sge *)wqe->sge)[1] = (struct aw_sge){ CORE_IOVA + 200, 5, CORE_STAG };
	memcpy(pair->a.mem + 100, "abc", 3);
	memcpy(pair->a.mem + 200, "defgh", 5);
	aw_qp_post(&pair->a.qp);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_ATOMIC_WRITE, AW_WC_SUCCESS);
	assert_int_equal(pair->a.log[0].cqe.byte_len, 0);
	assert_memory_equal(pair->b.mem + COUNTER, "abcdefgh", 8);
	wqe = fill(&pair->a, AW_OP_ATOMIC_WRITE, 0, 0);
	wqe->sge_count = 0;
	wqe->flags |= AW_WR_INLINE;
	octets = wqe->data;
	memcpy(octets, "01234567", 8);
	aw_qp_post(&pair->a.qp);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_ATOMIC_WRITE, AW_WC_SUCCESS);
	assert_memory_equal(pair->b.mem + COUNTER, "01234567", 8);
	assert_int_equal(pair->b.executed, 2);
	core_pair_destroy(pair);
}

static void atomic_write__bad_source(void **state)
{
	static const struct {
		uint32_t lkey, len;
		enum aw_wc_status status;
	} cases[] = {
		{ CORE_STAG, 8, AW_WC_SUCCESS },     { CORE_STAG, 7, AW_WC_LOC_LEN_ERR },
		{ CORE_STAG, 9, AW_WC_LOC_LEN_ERR }, { 0xbad, 8, AW_WC_LOC_PROT_ERR },
		{ 0x98, 8, AW_WC_SUCCESS }, /* nothing is written there */
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_pair *pair = placing_pair();
		struct aw_swqe *wqe = fill(&pair->a, AW_OP_ATOMIC_WRITE, 0, 0);

		core_mr_add(&pair->a, 0x98, 0, 0, 100);
		wqe->len = wqe->sge[0].len = cases[i].len;
		wqe->sge[0].lkey = cases[i].lkey;
		aw_qp_post(&pair->a.qp);
		core_pump(pair);
		core_expect_sq(&pair->a, AW_OP_ATOMIC_WRITE, cases[i].status);
		assert_int_equal(pair->b.executed, cases[i].status == AW_WC_SUCCESS);
		core_pair_destroy(pair);
	}
}

/* Its memory goes between the check and the reading. */
static void atomic_write__source_gone(void **state)
{
	struct core_pair *pair = placing_pair();

	(void)state;
	pair->a.gone = pair->a.mem + 4;
	fill(&pair->a, AW_OP_ATOMIC_WRITE, 0, 0);
	aw_qp_post(&pair->a.qp);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_ATOMIC_WRITE, AW_WC_LOC_PROT_ERR);
	assert_int_equal(pair->b.executed, 0);
	core_pair_destroy(pair);
}

static void request(struct core_end *end, uint32_t msn)
{
	struct ddp_hdr hdr = core_untagged(RDMAP_ATOMIC_REQ, DDP_QN_READ, msn, 0);
	const struct rdmap_atomic_req req = {
		.stag = CORE_STAG,
		.to = CORE_IOVA + COUNTER,
		.add_swap_data = 1,
	};
	uint8_t p[DDP_UNTAGGED_LEN + RDMAP_ATOMIC_REQ_LEN];

	ddp_put(&hdr, p);
	rdmap_atomic_req_put(&req, p + DDP_UNTAGGED_LEN);
	assert_int_equal(aw_rx_ulpdu(&end->qp, p, sizeof(p)), AW_OK);
}

/* However often its response finds the batch full, it is executed once. */
static void atomic_response__batch_full(void **state)
{
	struct core_end *end = core_responder();
	struct aw_tx_out out = {
		.arena = end->arena, .arena_len = 35, .iov = end->iov, .iov_max = 1
	};
	struct rdmap_atomic_resp resp;
	struct ddp_hdr hdr;
	size_t len;

	(void)state;
	request(end, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FULL);
	assert_true(core_tx_one(end));
	resp = rdmap_atomic_resp_get(core_peek(end, &hdr, &len));
	assert_int_equal(resp.original, 0);
	assert_int_equal(value(end, COUNTER), 1);
	assert_int_equal(end->executed, 1);
	core_end_destroy(end);
}

/* Checked again when its turn comes: the program may have taken the right away since. */
static void atomic_response__target_gone(void **state)
{
	struct core_end *end = core_responder();
	struct ddp_hdr hdr, about;
	const uint8_t *term;
	size_t len;

	(void)state;
	request(end, 1);
	request(end, 2);
	request(end, 3);
	assert_true(core_tx_one(end));
	end->wire_len = 0;
	end->mr[0].access &= ~(uint32_t)AW_ACCESS_REMOTE_ATOMIC;
	assert_true(core_tx_one(end));
	term = core_peek(end, &hdr, &len);
	assert_int_equal(hdr.qn, DDP_QN_TERMINATE);
	assert_int_equal(len, 4 + 2 + DDP_UNTAGGED_LEN);
	assert_memory_equal(term, "\x01\x02\xc0\x00\x00\x46", 6);
	assert_int_equal(ddp_get(term + 6, DDP_UNTAGGED_LEN, &about), AW_OK);
	assert_int_equal(about.msn, 2);
	assert_int_equal(about.qn, DDP_QN_READ);
	assert_int_equal(about.ulp_ctrl, rdmap_ctrl(RDMAP_ATOMIC_REQ));
	assert_int_equal(value(end, COUNTER), 1);
	core_end_destroy(end);
}

/* What a peer's Terminate says of the atomic: it alone fails with that. */
static void atomic__refused_by_the_peer(void **state)
{
	static const struct {
		uint32_t stag, to;
		enum aw_wc_status status;
	} cases[] = {
		{ CORE_STAG, COUNTER + 1, AW_WC_REM_INV_REQ_ERR },
		{ CORE_STAG, CORE_MEM, AW_WC_REM_ACCESS_ERR },
		{ 0xbad, COUNTER, AW_WC_REM_ACCESS_ERR },
		{ 0x98, 0, AW_WC_REM_ACCESS_ERR },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_pair *pair = extended_pair();
		struct aw_swqe *wqe;

		core_mr_add(&pair->b, 0x98, ~(uint32_t)AW_ACCESS_REMOTE_ATOMIC, 0, 100);
		core_post(&pair->a, AW_OP_READ, 1000, 10, 0);
		wqe = fill(&pair->a, AW_OP_CMP_SWAP, 0, 1);
		wqe->stag = cases[i].stag;
		wqe->to = CORE_IOVA + cases[i].to;
		aw_qp_post(&pair->a.qp);
		post(&pair->a, AW_OP_FETCH_ADD, 8, 1);
		core_tx(&pair->a);
		core_pump(pair);
		core_expect_sq(&pair->a, AW_OP_READ, AW_WC_WR_FLUSH_ERR); /* unanswered */
		core_expect_sq(&pair->a, AW_OP_CMP_SWAP, cases[i].status);
		core_expect_sq(&pair->a, AW_OP_FETCH_ADD, AW_WC_WR_FLUSH_ERR);
		assert_int_equal(pair->b.executed, 0);
		core_pair_destroy(pair);
	}
}

/* A Terminate with a Read Request header is not about an atomic, even where no Read is out. */
static void terminate_in__read_header_names_no_atomic(void **state)
{
	uint8_t term[4 + 2 + DDP_UNTAGGED_LEN + RDMAP_READ_REQ_LEN] = { 0x01, 0x01, 0xe0 };
	struct ddp_hdr hdr = core_untagged(RDMAP_TERMINATE, DDP_QN_TERMINATE, 1, 0);
	struct core_end *end = extended_initiator();

	(void)state;
	post(end, AW_OP_FETCH_ADD, 0, 1);
	core_tx(end);
	core_inject(end, &hdr, term, sizeof(term));
	core_expect_sq(end, AW_OP_FETCH_ADD, AW_WC_WR_FLUSH_ERR);
	core_end_destroy(end);
}

/* RFC 5041 5.1: an MSN counts on through 2^32. */
static void atomic__msn_wraps(void **state)
{
	struct core_pair *pair = extended_pair();

	(void)state;
	pair->a.qp.tx_msn[DDP_QN_READ] = pair->b.qp.rx_msn[DDP_QN_READ] = UINT32_MAX - 1;
	pair->b.qp.tx_msn[DDP_QN_ATOMIC] = pair->a.qp.rx_msn[DDP_QN_ATOMIC] = UINT32_MAX - 1;
	for (uint32_t i = 0; i < 4; i++)
		post(&pair->a, AW_OP_FETCH_ADD, 0, 1);
	core_pump(pair);
	for (uint32_t i = 0; i < 4; i++)
		core_expect_sq(&pair->a, AW_OP_FETCH_ADD, AW_WC_SUCCESS);
	assert_int_equal(pair->a.qp.rx_msn[DDP_QN_ATOMIC], 2);
	core_pair_destroy(pair);
}

/* A graceful close waits for the answers to atomics; after the peer's FIN none can come. */
static void atomic__close(void **state)
{
	struct core_pair *pair = extended_pair();

	(void)state;
	post(&pair->a, AW_OP_FETCH_ADD, 0, 1);
	aw_qp_close(&pair->a.qp);
	core_tx(&pair->a);
	assert_false(aw_qp_tx_finished(&pair->a.qp));
	core_pump(pair);
	assert_true(aw_qp_tx_finished(&pair->a.qp));
	core_expect_sq(&pair->a, AW_OP_FETCH_ADD, AW_WC_SUCCESS);
	core_pair_destroy(pair);
	pair = extended_pair();
	aw_qp_peer_closed(&pair->a.qp, 0);
	post(&pair->a, AW_OP_FETCH_ADD, 0, 1);
	assert_false(core_tx_one(&pair->a));
	assert_true(aw_qp_tx_finished(&pair->a.qp));
	core_pair_destroy(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(atomic_request__octets),
		cmocka_unit_test(atomic__end_to_end),
		cmocka_unit_test(atomic__scattered),
		cmocka_unit_test(atomic__bad_sink),
		cmocka_unit_test(atomic__waits_for_ord),
		cmocka_unit_test(atomic__no_ord),
		cmocka_unit_test(atomic__fence_behind),
		cmocka_unit_test(atomic__in_order_with_reads),
		cmocka_unit_test(atomic_write__end_to_end),
		cmocka_unit_test(atomic_write__bad_source),
		cmocka_unit_test(atomic_write__source_gone),
		cmocka_unit_test(atomic_response__batch_full),
		cmocka_unit_test(atomic_response__target_gone),
		cmocka_unit_test(atomic__refused_by_the_peer),
		cmocka_unit_test(terminate_in__read_header_names_no_atomic),
		cmocka_unit_test(atomic__msn_wraps),
		cmocka_unit_test(atomic__close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
