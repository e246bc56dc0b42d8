// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Extended reliable connections (docs/extensions.md): the SRQ's number on the wire, and what a target and an
// initiator refuse.
#include "../lib/core_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define SRQN 0xabcd12u

/* a is the initiator, b the target; b's own PD is one that no MR has. */
static struct core_pair *xrc_pair(void)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	pair->a.qp.xrc = AW_XRC_INITIATOR;
	pair->a.qp.remote_access = 0;
	pair->b.qp.xrc = AW_XRC_TARGET;
	pair->b.qp.pd = &core_other_pd;
	pair->b.qp.srq = true;
	pair->b.srqn = SRQN;
	return pair;
}

static void post(struct core_end *end, enum aw_op op, uint32_t len, uint32_t srqn)
{
	struct aw_swqe *wqe = core_wr(end, op, 0, len);

	assert_non_null(wqe);
	wqe->to = CORE_IOVA + 50000;
	wqe->inv_or_imm = 0x01020304;
	wqe->swap = srqn;
	aw_qp_post(&end->qp);
}

static void recv_ok(struct core_end *end, enum aw_op op, uint32_t byte_len)
{
	const struct core_cqe *c = core_cqe(end);

	assert_non_null(c);
	assert_int_equal(c->queue, AW_RQ);
	assert_int_equal(c->cqe.status, AW_WC_SUCCESS);
	assert_int_equal(c->cqe.op, op);
	assert_int_equal(c->cqe.byte_len, byte_len);
}

static void message__has_the_number_in_every_segment(void **state)
{
	struct core_pair *pair = xrc_pair();
	struct ddp_hdr hdr;
	size_t len;

	(void)state;
	post(&pair->a, AW_OP_SEND, 4000, SRQN);
	for (int i = 0; i < 3; i++) {
		pair->a.wire_len = 0;
		assert_true(core_tx_one(&pair->a));
		core_peek(&pair->a, &hdr, &len);
		assert_int_equal(hdr.ulp_rsvd, SRQN);
	}
	core_pair_destroy(pair);
}

static void message__of_rc_has_none(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);
	struct ddp_hdr hdr;
	size_t len;

	(void)state;
	post(&pair->a, AW_OP_SEND, 4, SRQN);
	assert_true(core_tx_one(&pair->a));
	core_peek(&pair->a, &hdr, &len);
	assert_int_equal(hdr.ulp_rsvd, 0);
	core_pair_destroy(pair);
}

static void target__takes_receives_of_the_srq(void **state)
{
	static const enum aw_op ops[] = { AW_OP_SEND, AW_OP_SEND_IMM, AW_OP_WRITE_IMM };
	struct core_pair *pair = xrc_pair();

	(void)state;
	for (int i = 0; i < 3; i++) {
		core_recv(&pair->b, 7, 0, 4000);
		post(&pair->a, ops[i], 3000, SRQN);
		core_pump(pair);
		recv_ok(&pair->b, ops[i], 3000);
		core_expect_sq(&pair->a, ops[i], AW_WC_SUCCESS);
	}
	core_pair_destroy(pair);
}

static void target__serves_mrs_of_its_srqs_pds(void **state)
{
	static const enum aw_op ops[] = { AW_OP_WRITE, AW_OP_READ, AW_OP_FETCH_ADD };
	struct core_pair *pair = xrc_pair();

	(void)state;
	for (int i = 0; i < 3; i++) {
		post(&pair->a, ops[i], 8, 0);
		core_pump(pair);
		core_expect_sq(&pair->a, ops[i], AW_WC_SUCCESS);
	}
	core_pair_destroy(pair);
}

static void target__refuses_mrs_of_other_pds(void **state)
{
	static const enum aw_op ops[] = { AW_OP_WRITE, AW_OP_READ, AW_OP_FETCH_ADD };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct core_pair *pair = xrc_pair();

		/* The QP's own PD counts as little as any. */
		pair->b.mr[0].pd = &core_other_pd;
		pair->b.qp.pd = "another";
		post(&pair->a, ops[i], 8, 0);
		core_pump(pair);
		core_expect_sq(&pair->a, ops[i], AW_WC_REM_ACCESS_ERR);
		assert_int_equal(pair->b.qp.refusal.cause, AW_REFUSAL_PD);
		core_pair_destroy(pair);
	}
}

static void unknown_srq__ends_the_stream(void **state)
{
	static const enum aw_op ops[] = { AW_OP_SEND, AW_OP_SEND_IMM, AW_OP_WRITE_IMM };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct core_pair *pair = xrc_pair();

		core_recv(&pair->b, 7, 0, 4000);
		post(&pair->a, ops[i], 16, SRQN + 1);
		core_pump(pair);
		core_expect_sq(&pair->a, ops[i], AW_WC_REM_INV_REQ_ERR);
		assert_int_equal(pair->b.qp.error, AW_E_DDP_QN);
		assert_int_equal(pair->a.qp.peer_error, AW_E_DDP_QN);
		/* The SRQ's receive is not this QP's to flush. */
		assert_null(core_cqe(&pair->b));
		assert_int_equal(aw_rq_count(&pair->b.rq), 1);
		core_pair_destroy(pair);
	}
}

static void srq_without_receives__holds_the_stream(void **state)
{
	struct core_pair *pair = xrc_pair();
	uint8_t kept[2048];
	size_t len;

	(void)state;
	pair->b.qp.rnr_holds = true;
	post(&pair->a, AW_OP_SEND, 16, SRQN);
	assert_true(core_tx_one(&pair->a));
	len = pair->a.wire_len;
	memcpy(kept, pair->a.wire, len);
	pair->a.wire_len = 0;
	assert_int_equal(aw_rx_octets(&pair->b.qp, kept, len), 0);
	assert_int_equal(pair->b.qp.rx_held, len);
	core_recv(&pair->b, 7, 0, 16);
	assert_int_equal(aw_rx_octets(&pair->b.qp, kept, len), len);
	recv_ok(&pair->b, AW_OP_SEND, 16);
	core_pair_destroy(pair);
}

/* Only a peer that is not ours sends these. */
static void target__refuses_send_with_invalidate(void **state)
{
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND_INV, DDP_QN_SEND, 1, 0);
	struct core_pair *pair = xrc_pair();

	(void)state;
	hdr.ulp_rsvd = SRQN;
	core_recv(&pair->b, 7, 0, 16);
	assert_int_equal(core_ulpdu(&pair->b, &hdr, 4), AW_E_RDMAP_OPCODE);
	core_pair_destroy(pair);
}

static void initiator__refuses_messages(void **state)
{
	static const enum rdmap_opcode opcodes[] = { RDMAP_SEND, RDMAP_SEND_SE, RDMAP_IMM };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct core_pair *pair = xrc_pair();
		struct ddp_hdr hdr = core_untagged(opcodes[i], DDP_QN_SEND, 1, 0);
		uint8_t immediate[RDMAP_IMM_LEN] = { 0 };

		pair->a.qp.rnr_holds = true;
		if (opcodes[i] == RDMAP_IMM)
			core_inject(&pair->a, &hdr, immediate, sizeof(immediate));
		else
			core_inject(&pair->a, &hdr, "abcd", 4);
		assert_int_equal(pair->a.qp.error, AW_E_RDMAP_OPCODE);
		core_pair_destroy(pair);
	}
}

static void initiator__refuses_writes(void **state)
{
	struct core_pair *pair = xrc_pair();
	struct ddp_hdr hdr = core_tagged(RDMAP_WRITE, CORE_STAG, CORE_IOVA);

	(void)state;
	core_inject(&pair->a, &hdr, "abcd", 4);
	assert_int_equal(pair->a.qp.error, AW_E_RDMAP_ACCESS);
	core_pair_destroy(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(message__has_the_number_in_every_segment),
		cmocka_unit_test(message__of_rc_has_none),
		cmocka_unit_test(target__takes_receives_of_the_srq),
		cmocka_unit_test(target__serves_mrs_of_its_srqs_pds),
		cmocka_unit_test(target__refuses_mrs_of_other_pds),
		cmocka_unit_test(unknown_srq__ends_the_stream),
		cmocka_unit_test(srq_without_receives__holds_the_stream),
		cmocka_unit_test(target__refuses_send_with_invalidate),
		cmocka_unit_test(initiator__refuses_messages),
		cmocka_unit_test(initiator__refuses_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
