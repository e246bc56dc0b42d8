// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rules of RFC 7306 that span more than one file of the core: order, the field that means nothing
// here, and what a misaligned address leaves alone. docs/rfc/7306.toml says which test holds what.
#include "../lib/core_pair.h"

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

static void inject_atomic(struct core_end *end, uint32_t msn, uint32_t inv_stag,
			  const struct rdmap_atomic_req *req)
{
	struct ddp_hdr hdr = core_untagged(RDMAP_ATOMIC_REQ, DDP_QN_READ, msn, 0);
	uint8_t octets[RDMAP_ATOMIC_REQ_LEN];

	hdr.ulp_rsvd = inv_stag;
	rdmap_atomic_req_put(req, octets);
	core_inject(end, &hdr, octets, sizeof(octets));
}

/* Section 4.1: no message of this RFC invalidates anything. */
static void rules_7306__invalidate_stag_is_ignored(void **state)
{
	static const enum rdmap_opcode imms[] = { RDMAP_IMM, RDMAP_IMM_SE };
	const struct rdmap_atomic_req req = { .stag = CORE_STAG, .to = CORE_IOVA + COUNTER };
	struct core_end *end = core_responder();
	struct ddp_hdr hdr;

	(void)state;
	end->qp.stream.extensions = true;
	core_mr_add(end, 0x99, 0, 0, 1);
	for (uint32_t i = 0; i < 2; i++) {
		core_recv(end, i, 0, 10);
		hdr = core_untagged(imms[i], DDP_QN_SEND, i + 1, 0);
		hdr.ulp_rsvd = 0x99;
		core_inject(end, &hdr, "\1\2\3\4\0\0\0\0", 8);
		assert_int_equal(core_cqe(end)->cqe.status, AW_WC_SUCCESS);
	}
	inject_atomic(end, 1, 0x99, &req);
	core_tx(end);
	assert_int_equal(end->executed, 1);
	assert_int_equal(end->invalidated, 0);
	core_end_destroy(end);
}

/* Section 6.3: with Sends among them, in the order posted, each with its own receive. */
static void rules_7306__immediates_are_delivered_in_order(void **state)
{
	static const enum aw_op ops[] = { AW_OP_WRITE_IMM, AW_OP_SEND, AW_OP_WRITE_IMM,
					  AW_OP_WRITE_IMM, AW_OP_SEND };
	struct core_pair *pair = extended_pair();

	(void)state;
	for (uint32_t i = 0; i < 5; i++) {
		struct aw_swqe *wqe = core_wr(&pair->a, ops[i], 0, i + 1);

		core_recv(&pair->b, 70 + i, 0, 100);
		wqe->inv_or_imm = ops[i] == AW_OP_WRITE_IMM ? 100 + i : 0;
		aw_qp_post(&pair->a.qp);
	}
	core_pump(pair);
	for (uint32_t i = 0; i < 5; i++) {
		const struct core_cqe *c = core_cqe(&pair->b);
		bool imm = ops[i] == AW_OP_WRITE_IMM;

		assert_non_null(c);
		assert_int_equal(c->cqe.op, ops[i]);
		assert_int_equal(c->cqe.wr_id, 70 + i);
		assert_int_equal(c->cqe.byte_len, i + 1);
		assert_int_equal(c->cqe.inv_or_imm, imm ? 100 + i : 0);
		core_expect_sq(&pair->a, ops[i], AW_WC_SUCCESS);
	}
	core_pair_destroy(pair);
}

/* Section 5.4: what was written before an atomic is there when it is executed. */
static void rules_7306__atomic_sees_what_was_written_before(void **state)
{
	struct core_pair *pair = extended_pair();
	const uint64_t forty = 40;
	uint64_t got;

	(void)state;
	memcpy(pair->a.mem + 5000, &forty, 8);
	core_post(&pair->a, AW_OP_WRITE, 5000, 8, COUNTER);
	core_wr(&pair->a, AW_OP_FETCH_ADD, 0, 8)->compare_add = 2;
	aw_sq_at(&pair->a.qp.sq, pair->a.qp.sq.tail)->to = CORE_IOVA + COUNTER;
	aw_qp_post(&pair->a.qp);
	core_post(&pair->a, AW_OP_READ, 6000, 8, COUNTER);
	core_pump(pair);
	memcpy(&got, pair->a.mem, 8);
	assert_int_equal(got, 40);
	memcpy(&got, pair->a.mem + 6000, 8);
	assert_int_equal(got, 42);
	core_pair_destroy(pair);
}

/* Sections 5.1.1, 5.1.2 and 8.2, for either operation at each of the seven wrong addresses. */
static void rules_7306__misaligned_changes_nothing(void **state)
{
	static const uint8_t ops[] = { RDMAP_FETCH_ADD, RDMAP_CMP_SWAP };
	static const uint8_t zeros[32];

	(void)state;
	for (unsigned int i = 0; i < 14; i++) {
		const struct rdmap_atomic_req req = {
			.op = ops[i % 2],
			.stag = CORE_STAG,
			.to = CORE_IOVA + COUNTER + 1 + i / 2,
			.add_swap_data = 0x1111111111111111,
			.add_swap_mask = ops[i % 2] == RDMAP_CMP_SWAP ? UINT64_MAX : 0,
		};
		struct core_end *end = core_responder();
		struct ddp_hdr hdr;
		size_t len;

		inject_atomic(end, 1, 0, &req);
		assert_true(core_tx_one(end));
		assert_memory_equal(core_peek(end, &hdr, &len), "\x02\x07", 2);
		assert_int_equal(hdr.qn, DDP_QN_TERMINATE);
		assert_false(core_tx_one(end));
		assert_int_equal(end->executed, 0);
		assert_memory_equal(end->mem + COUNTER - 8, zeros, sizeof(zeros));
		core_end_destroy(end);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_7306__invalidate_stag_is_ignored),
		cmocka_unit_test(rules_7306__immediates_are_delivered_in_order),
		cmocka_unit_test(rules_7306__atomic_sees_what_was_written_before),
		cmocka_unit_test(rules_7306__misaligned_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
