// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Immediate data (RFC 7306 6) as two anywarp ends use it (docs/extensions.md), as it goes out; and
// what a Terminate about it does to the WR.
#include "../lib/core_pair.h"

#include "wire/octets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static struct core_end *extended_initiator(void)
{
	struct core_end *end = core_initiator(1448);

	end->qp.stream.extensions = true;
	return end;
}

static void post(struct core_end *end, enum aw_op op, uint32_t len, uint8_t flags)
{
	struct aw_swqe *wqe = core_wr(end, op, 0, len);

	assert_non_null(wqe);
	wqe->to = CORE_IOVA + 50000;
	wqe->inv_or_imm = 0x01020304;
	wqe->flags |= flags;
	aw_qp_post(&end->qp);
}

/* The next message on the wire of an end that has sent nothing before. */
static void expect_immediate(struct core_end *end, enum rdmap_opcode op, uint32_t msn,
			     uint32_t length)
{
	struct ddp_hdr hdr;
	const uint8_t *imm;
	size_t len;

	end->wire_len = 0;
	assert_true(core_tx_one(end));
	imm = core_peek(end, &hdr, &len);
	assert_int_equal(len, 8);
	assert_false(hdr.tagged);
	assert_true(hdr.last);
	assert_int_equal(hdr.ulp_ctrl, rdmap_ctrl(op));
	assert_int_equal(hdr.ulp_rsvd, 0);
	assert_int_equal(hdr.qn, DDP_QN_SEND);
	assert_int_equal(hdr.msn, msn);
	assert_int_equal(hdr.mo, 0);
	assert_memory_equal(imm, "\x01\x02\x03\x04", 4);
	assert_int_equal(get_be32(imm + 4), length);
}

static void expect_segment(struct core_end *end, uint8_t ctrl, bool last, uint32_t msn, size_t n)
{
	struct ddp_hdr hdr;
	size_t len;

	end->wire_len = 0;
	assert_true(core_tx_one(end));
	core_peek(end, &hdr, &len);
	assert_int_equal(hdr.ulp_ctrl, ctrl);
	assert_int_equal(hdr.last, last);
	assert_int_equal(hdr.msn, msn);
	assert_int_equal(len, n);
}

static void write_imm__octets(void **state)
{
	struct core_end *end = extended_initiator();

	(void)state;
	post(end, AW_OP_WRITE_IMM, 2000, 0);
	post(end, AW_OP_WRITE_IMM, 0, AW_WR_SOLICITED);
	expect_segment(end, 0x50, false, 0, end->qp.mulpdu - DDP_TAGGED_LEN);
	expect_segment(end, 0x50, true, 0, 2000 - (end->qp.mulpdu - DDP_TAGGED_LEN));
	assert_int_equal(end->logged, 0); /* not before its Immediate */
	expect_immediate(end, RDMAP_IMM, 1, 2000);
	core_expect_sq(end, AW_OP_WRITE_IMM, AW_WC_SUCCESS);
	/* A Write of nothing is no message. */
	expect_immediate(end, RDMAP_IMM_SE, 2, 0);
	core_expect_sq(end, AW_OP_WRITE_IMM, AW_WC_SUCCESS);
	assert_false(core_tx_one(end));
	core_end_destroy(end);
}

static void send_imm__octets(void **state)
{
	struct core_end *end = extended_initiator();

	(void)state;
	post(end, AW_OP_SEND_IMM, 10, AW_WR_SOLICITED);
	post(end, AW_OP_SEND_IMM, 0, 0);
	expect_immediate(end, RDMAP_IMM, 1, UINT32_MAX);
	assert_int_equal(end->logged, 0);
	expect_segment(end, 0x45, true, 2, 10);
	core_expect_sq(end, AW_OP_SEND_IMM, AW_WC_SUCCESS);
	expect_immediate(end, RDMAP_IMM, 3, UINT32_MAX);
	expect_segment(end, 0x43, true, 4, 0);
	core_expect_sq(end, AW_OP_SEND_IMM, AW_WC_SUCCESS);
	core_end_destroy(end);
}

/* A batch that is full between the two messages: the second goes out later, once. */
static void send_imm__batch_full_between(void **state)
{
	struct core_end *end = extended_initiator();
	struct aw_tx_out out = {
		.arena = end->arena, .arena_len = 40, .iov = end->iov, .iov_max = 1
	};

	(void)state;
	post(end, AW_OP_SEND_IMM, 10, 0);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FULL);
	aw_tx_sent(&end->qp, out.octets);
	assert_int_equal(end->logged, 0);
	expect_segment(end, 0x43, true, 2, 10);
	core_expect_sq(end, AW_OP_SEND_IMM, AW_WC_SUCCESS);
	core_end_destroy(end);
}

/* Refused here, before anything goes out, though the poster should have. */
static void imm__not_agreed_on(void **state)
{
	static const enum aw_op ops[] = { AW_OP_WRITE_IMM, AW_OP_SEND_IMM };

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct core_end *end = core_initiator(1448);

		post(end, ops[i], 10, 0);
		core_tx(end);
		core_expect_sq(end, ops[i], AW_WC_LOC_QP_OP_ERR);
		core_end_destroy(end);
	}
}

/* A bad lkey is found before the Immediate has gone out alone. */
static void send_imm__bad_lkey(void **state)
{
	struct core_end *end = extended_initiator();
	struct aw_swqe *wqe = core_wr(end, AW_OP_SEND_IMM, 0, 10);
	struct ddp_hdr hdr;
	size_t len;

	(void)state;
	wqe->sge[0].lkey = 0xbad;
	aw_qp_post(&end->qp);
	assert_true(core_tx_one(end));
	core_peek(end, &hdr, &len);
	assert_int_equal(hdr.qn, DDP_QN_TERMINATE);
	core_expect_sq(end, AW_OP_SEND_IMM, AW_WC_LOC_PROT_ERR);
	core_end_destroy(end);
}

/* What the peer says of one of the WR's messages is the WR's status; of another, nobody's. */
static void terminate_in__names_an_immediate(void **state)
{
	static const struct {
		enum aw_op op;
		struct ddp_hdr hdr;
		const char *ctrl;
		enum aw_wc_status status;
	} cases[] = {
		{ AW_OP_WRITE_IMM, { .ulp_ctrl = 0x48, .msn = 1 }, "\x12\x02", AW_WC_REM_OP_ERR },
		{ AW_OP_WRITE_IMM, { .ulp_ctrl = 0x48, .msn = 2 }, "\x12\x02", AW_WC_WR_FLUSH_ERR },
		{ AW_OP_WRITE_IMM,
		  { .tagged = true, .ulp_ctrl = 0x40, .stag = CORE_STAG, .to = CORE_IOVA + 50009 },
		  "\x11\x01",
		  AW_WC_REM_ACCESS_ERR },
		{ AW_OP_SEND_IMM, { .ulp_ctrl = 0x48, .msn = 1 }, "\x02\x06", AW_WC_REM_OP_ERR },
		{ AW_OP_SEND_IMM,
		  { .ulp_ctrl = 0x43, .msn = 2 },
		  "\x12\x05",
		  AW_WC_REM_INV_REQ_ERR },
		{ AW_OP_SEND_IMM, { .ulp_ctrl = 0x43, .msn = 0 }, "\x12\x02", AW_WC_WR_FLUSH_ERR },
		{ AW_OP_SEND_IMM, { .ulp_ctrl = 0x43, .msn = 3 }, "\x12\x02", AW_WC_WR_FLUSH_ERR },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_end *end = extended_initiator();
		uint8_t term[4 + 2 + 18] = { 0, 0, 0xc0 };

		core_post(end, AW_OP_READ, 0, 10, 0); /* so that the next one cannot retire */
		post(end, cases[i].op, 5000, 0);
		core_tx(end);
		memcpy(term, cases[i].ctrl, 2);
		ddp_put(&cases[i].hdr, term + 6);
		core_inject(end,
			    &(struct ddp_hdr){ .last = true,
					       .ulp_ctrl = rdmap_ctrl(RDMAP_TERMINATE),
					       .qn = DDP_QN_TERMINATE,
					       .msn = 1 },
			    term, cases[i].hdr.tagged ? 20 : 24);
		core_expect_sq(end, AW_OP_READ, AW_WC_WR_FLUSH_ERR);
		core_expect_sq(end, cases[i].op, cases[i].status);
		core_end_destroy(end);
	}
}

/* Begun, though none of its payload has gone out. */
static void terminate_in__names_an_immediate_alone(void **state)
{
	static const uint8_t term[] = { 0x02, 0x06, 0xc0, 0, 0, 26, 0x41, 0x48, 0, 0, 0, 0,
					0,    0,    0,	  0, 0, 0,  0,	  1,	0, 0, 0, 0 };
	struct core_end *end = extended_initiator();

	(void)state;
	post(end, AW_OP_SEND_IMM, 10, 0);
	assert_true(core_tx_one(end));
	core_inject(end,
		    &(struct ddp_hdr){ .last = true,
				       .ulp_ctrl = rdmap_ctrl(RDMAP_TERMINATE),
				       .qn = DDP_QN_TERMINATE,
				       .msn = 1 },
		    term, sizeof(term));
	core_expect_sq(end, AW_OP_SEND_IMM, AW_WC_REM_OP_ERR);
	core_end_destroy(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_imm__octets),
		cmocka_unit_test(send_imm__octets),
		cmocka_unit_test(send_imm__batch_full_between),
		cmocka_unit_test(imm__not_agreed_on),
		cmocka_unit_test(send_imm__bad_lkey),
		cmocka_unit_test(terminate_in__names_an_immediate),
		cmocka_unit_test(terminate_in__names_an_immediate_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
