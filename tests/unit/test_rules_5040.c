// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rules of RFC 5040 that span more than one file of the core, each against two ends or to the
// octet. docs/rfc/5040.toml says which rule each test holds.
#include "../lib/core_pair.h"
#include "wire/fpdu.h"
#include "wire/octets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The header of the one FPDU that end has to send now. */
static struct ddp_hdr next_hdr(struct core_end *end)
{
	struct ddp_hdr hdr;
	size_t len;

	end->wire_len = 0;
	assert_true(core_tx_one(end));
	core_peek(end, &hdr, &len);
	return hdr;
}

/* Figure 4, row by row: Tagged flag, opcode, queue number, and an Invalidate STag of 0. */
static void rules_5040__usage_of_ddp_fields(void **state)
{
	static const struct {
		enum aw_op op;
		bool tagged;
		uint8_t ctrl;
		uint32_t qn;
	} rows[] = {
		{ AW_OP_WRITE, true, 0x40, 0 },
		{ AW_OP_READ, false, 0x41, 1 },
		{ AW_OP_SEND, false, 0x43, 0 },
	};
	struct core_pair *pair = core_pair_ready(1448);
	struct ddp_hdr hdr;

	(void)state;
	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		core_post(&pair->a, rows[i].op, 0, 5, 7);
		hdr = next_hdr(&pair->a);
		assert_int_equal(hdr.tagged, rows[i].tagged);
		assert_int_equal(hdr.ulp_ctrl, rows[i].ctrl);
		assert_int_equal(hdr.qn, rows[i].qn);
		assert_int_equal(hdr.ulp_rsvd, 0);
		assert_int_equal(hdr.stag, rows[i].tagged ? CORE_STAG : 0);
		assert_int_equal(hdr.to, rows[i].tagged ? CORE_IOVA + 7 : 0);
		assert_int_equal(hdr.msn, !rows[i].tagged);
	}
	aw_qp_terminate(&pair->a.qp, AW_E_LOCAL_CATASTROPHIC);
	hdr = next_hdr(&pair->a);
	assert_false(hdr.tagged);
	assert_int_equal(hdr.ulp_ctrl, 0x47);
	assert_int_equal(hdr.qn, 2);
	assert_int_equal(hdr.ulp_rsvd, 0);
	core_pair_destroy(pair);
}

/* Only the two Sends with Invalidate have one; elsewhere the field may hold anything. */
static void rules_5040__invalidate_stag_elsewhere_is_ignored(void **state)
{
	static const enum rdmap_opcode sends[] = { RDMAP_SEND, RDMAP_SEND_SE };
	static const struct rdmap_read_req req = { 1, 0, 5, CORE_STAG, CORE_IOVA };
	struct core_end *end = core_responder();
	uint8_t payload[RDMAP_READ_REQ_LEN];
	struct ddp_hdr hdr;

	(void)state;
	core_mr_add(end, 0x99, 0, 0, 1);
	for (uint32_t i = 0; i < ARRAY_LEN(sends); i++) {
		core_recv(end, i, 0, 10);
		hdr = core_untagged(sends[i], DDP_QN_SEND, i + 1, 0);
		hdr.ulp_rsvd = 0x99;
		core_inject(end, &hdr, "abc", 3);
		assert_int_equal(core_cqe(end)->cqe.status, AW_WC_SUCCESS);
	}
	hdr = core_untagged(RDMAP_READ_REQ, DDP_QN_READ, 1, 0);
	hdr.ulp_rsvd = 0x99;
	rdmap_read_req_put(&req, payload);
	core_inject(end, &hdr, payload, sizeof(payload));
	assert_int_equal(end->qp.irq_count, 1);
	hdr = core_untagged(RDMAP_TERMINATE, DDP_QN_TERMINATE, 1, 0);
	hdr.ulp_rsvd = 0x99;
	core_inject(end, &hdr, "\x12\x02\0\0", 4);
	assert_int_equal(end->qp.peer_error, AW_E_DDP_NO_BUFFER);
	assert_int_equal(end->invalidated, 0);
	core_end_destroy(end);
}

static void rules_5040__sends_are_delivered_in_order(void **state)
{
	static const uint32_t lens[] = { 3000, 0, 1, 0, 5000 };
	struct core_pair *pair = core_pair_ready(1448);

	(void)state;
	for (uint32_t i = 0; i < ARRAY_LEN(lens); i++) {
		core_recv(&pair->b, 70 + i, 0, 6000);
		core_post(&pair->a, AW_OP_SEND, 0, lens[i], 0);
	}
	core_recv(&pair->b, 99, 0, 6000);
	core_pump(pair);
	for (uint32_t i = 0; i < ARRAY_LEN(lens); i++) {
		const struct core_cqe *c = core_cqe(&pair->b);

		assert_non_null(c);
		assert_int_equal(c->cqe.status, AW_WC_SUCCESS);
		assert_int_equal(c->cqe.wr_id, 70 + i);
		assert_int_equal(c->cqe.byte_len, lens[i]);
	}
	assert_null(core_cqe(&pair->b)); /* one receive for each, and no more */
	core_pair_destroy(pair);
}

static void rules_5040__wrs_go_out_in_the_order_posted(void **state)
{
	static const enum aw_op ops[] = { AW_OP_SEND, AW_OP_WRITE, AW_OP_READ, AW_OP_WRITE,
					  AW_OP_READ, AW_OP_SEND,  AW_OP_WRITE };
	static const uint8_t ctrls[] = { 0x43, 0x40, 0x41, 0x40, 0x41, 0x43, 0x40 };
	struct core_end *end = core_initiator(1448);
	const uint8_t *p = end->wire;

	(void)state;
	for (uint32_t i = 0; i < ARRAY_LEN(ops); i++)
		core_post(end, ops[i], 0, 4, i);
	core_tx(end);
	for (uint32_t i = 0; i < ARRAY_LEN(ops); i++) {
		assert_true(p < end->wire + end->wire_len);
		assert_int_equal(p[3], ctrls[i]);
		if (ops[i] == AW_OP_WRITE)
			assert_int_equal(get_be64(p + 8), CORE_IOVA + i);
		if (ops[i] == AW_OP_READ)
			assert_int_equal(get_be64(p + 40), CORE_IOVA + i);
		p += fpdu_size(get_be16(p));
	}
	assert_ptr_equal(p, end->wire + end->wire_len);
	core_end_destroy(end);
}

/* Three Reads of a hand-made peer, to sinks of its choice, in one go. */
static void ask_for_three(struct core_end *end, const struct rdmap_read_req *reqs)
{
	for (uint32_t i = 0; i < 3; i++) {
		struct ddp_hdr hdr = core_untagged(RDMAP_READ_REQ, DDP_QN_READ, i + 1, 0);
		uint8_t payload[RDMAP_READ_REQ_LEN];

		rdmap_read_req_put(&reqs[i], payload);
		core_inject(end, &hdr, payload, sizeof(payload));
	}
}

/* One response for each request, in their order, each to the sink that its request named. */
static void rules_5040__reads_are_answered_in_order(void **state)
{
	static const struct rdmap_read_req reqs[] = {
		{ 0xa00, 1u << 20, 1000, CORE_STAG, CORE_IOVA + 9 },
		{ 0xfffffff0, 0, 0, CORE_STAG, CORE_IOVA },
		{ 0xb00, UINT64_MAX - 99, 100, CORE_STAG, CORE_IOVA + 5000 },
	};
	struct core_end *end = core_responder();

	(void)state;
	end->qp.mulpdu = 614; /* the first in two segments */
	for (uint32_t at = 0; at < CORE_MEM; at++)
		end->mem[at] = (uint8_t)(at * 3 + at / 256);
	ask_for_three(end, reqs);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t at = 0;
		bool last = false;

		while (!last) {
			struct ddp_hdr hdr = next_hdr(end);
			size_t len;
			const uint8_t *data = core_peek(end, &hdr, &len);

			assert_true(hdr.tagged);
			assert_int_equal(hdr.ulp_ctrl, rdmap_ctrl(RDMAP_READ_RESP));
			assert_int_equal(hdr.stag, reqs[i].sink_stag);
			assert_int_equal(hdr.to, reqs[i].sink_to + at);
			assert_memory_equal(data, end->mem + reqs[i].src_to - CORE_IOVA + at, len);
			at += (uint32_t)len;
			last = hdr.last;
		}
		assert_int_equal(at, reqs[i].size);
	}
	assert_false(core_tx_one(end));
	assert_int_equal(end->logged, 0); /* its program hears nothing of them */
	core_end_destroy(end);
}

/* Section 5.5: a Read behind a Write of the same stream sees it, whoever is slow. */
static void rules_5040__read_sees_what_was_written_before(void **state)
{
	struct core_pair *pair = core_pair_ready(1448);

	(void)state;
	memset(pair->a.mem, 7, 100);
	core_post(&pair->a, AW_OP_WRITE, 0, 100, 1000);
	core_post(&pair->a, AW_OP_READ, 500, 100, 1000);
	core_pump(pair);
	assert_memory_equal(pair->a.mem + 500, pair->a.mem, 100);
	core_pair_destroy(pair);
}

static void rules_5040__read_is_complete_with_its_last_segment(void **state)
{
	struct core_end *end = core_initiator(1448);
	struct ddp_hdr hdr = core_tagged(RDMAP_READ_RESP, 0x7000, 0);

	(void)state;
	core_post(end, AW_OP_READ, 0, 9, 0);
	core_tx(end);
	assert_int_equal(end->logged, 0);
	hdr.last = false;
	assert_int_equal(core_ulpdu(end, &hdr, 8), AW_OK);
	assert_int_equal(end->logged, 0);
	hdr.last = true;
	hdr.to = 8;
	assert_int_equal(core_ulpdu(end, &hdr, 1), AW_OK);
	core_expect_sq(end, AW_OP_READ, AW_WC_SUCCESS);
	core_end_destroy(end);
}

/* Section 7.1, case 4. Both bad segments are there before the Terminate can be sent. */
static void rules_5040__first_error_is_the_one_reported(void **state)
{
	struct ddp_hdr first = core_tagged(RDMAP_WRITE, 0xbad1, 0);
	struct ddp_hdr second = core_tagged(RDMAP_WRITE, CORE_STAG, 0);
	struct core_end *end = core_responder();
	uint8_t octets[200], wanted[DDP_TAGGED_LEN];
	size_t size = core_fpdu(octets, &first, "x", 1), len;
	struct term_msg msg;
	struct ddp_hdr hdr;

	(void)state;
	size += core_fpdu(octets + size, &second, "xy", 2);
	assert_int_equal(aw_rx_octets(&end->qp, octets, size), size);
	aw_qp_terminate(&end->qp, AW_E_LOCAL_CATASTROPHIC);
	assert_true(core_tx_one(end));
	assert_false(core_tx_one(end));
	const uint8_t *term = core_peek(end, &hdr, &len);

	assert_true(term_get(term, len, &msg));
	assert_int_equal(msg.error, AW_E_DDP_TAGGED_STAG);
	assert_int_equal(msg.seg_len, DDP_TAGGED_LEN + 1);
	ddp_put(&first, wanted);
	assert_memory_equal(msg.ddp, wanted, DDP_TAGGED_LEN);
	core_end_destroy(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_5040__usage_of_ddp_fields),
		cmocka_unit_test(rules_5040__invalidate_stag_elsewhere_is_ignored),
		cmocka_unit_test(rules_5040__sends_are_delivered_in_order),
		cmocka_unit_test(rules_5040__wrs_go_out_in_the_order_posted),
		cmocka_unit_test(rules_5040__reads_are_answered_in_order),
		cmocka_unit_test(rules_5040__read_sees_what_was_written_before),
		cmocka_unit_test(rules_5040__read_is_complete_with_its_last_segment),
		cmocka_unit_test(rules_5040__first_error_is_the_one_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
