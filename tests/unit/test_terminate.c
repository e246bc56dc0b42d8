// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Terminates: what goes out for each kind of error (RFC 5040 figures 9 and 10), and what an
// inbound one does to the WRs.
#include "../lib/core_pair.h"

#include "wire/octets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

/* Injects one bad segment and compares the Terminate's payload. */
static void expect_terminate(struct core_end *end, const struct ddp_hdr *hdr, const void *payload,
			     size_t len, const uint8_t ctrl[4])
{
	const bool with_segment = ctrl[2] & 0x40, with_read = ctrl[2] & 0x20;
	size_t ddp_len = ddp_hdr_len(hdr->tagged), got_len;
	uint8_t ddp[DDP_UNTAGGED_LEN];
	struct ddp_hdr got;
	const uint8_t *term;

	core_inject(end, hdr, payload, len);
	assert_true(core_tx_one(end));
	assert_false(core_tx_one(end));
	term = core_peek(end, &got, &got_len);
	assert_int_equal(got.qn, DDP_QN_TERMINATE);
	assert_int_equal(got.msn, 1);
	assert_int_equal(got.mo, 0);
	assert_true(got.last);
	assert_int_equal(got.ulp_ctrl, rdmap_ctrl(RDMAP_TERMINATE));
	assert_int_equal(got_len, 4 + (with_segment ? 2 + ddp_len : 0) + (with_read ? 28 : 0));
	assert_memory_equal(term, ctrl, 4);
	if (with_segment) {
		ddp_put(hdr, ddp);
		assert_int_equal(get_be16(term + 4), ddp_len + len);
		assert_memory_equal(term + 6, ddp, ddp_len);
	}
	if (with_read)
		assert_memory_equal(term + 6 + ddp_len, payload, 28);
	core_end_destroy(end);
}

static void terminate_out__untagged_too_long(void **state)
{
	static const uint8_t ctrl[] = { 0x12, 0x05, 0xc0, 0x00 };
	struct ddp_hdr hdr = { .last = true, .ulp_ctrl = rdmap_ctrl(RDMAP_SEND), .msn = 1 };
	struct core_end *end = core_responder();

	(void)state;
	core_recv(end, 1, 0, 4);
	expect_terminate(end, &hdr, "12345", 5, ctrl);
}

static void terminate_out__tagged_bounds(void **state)
{
	static const uint8_t ctrl[] = { 0x11, 0x01, 0xc0, 0x00 };
	struct ddp_hdr hdr = { .tagged = true,
			       .last = true,
			       .ulp_ctrl = rdmap_ctrl(RDMAP_WRITE),
			       .stag = CORE_STAG,
			       .to = 3 };

	(void)state;
	expect_terminate(core_responder(), &hdr, "12345", 5, ctrl);
}

static void terminate_out__opcode(void **state)
{
	static const uint8_t ctrl[] = { 0x02, 0x06, 0xc0, 0x00 };
	struct ddp_hdr hdr = { .last = true, .ulp_ctrl = rdmap_ctrl(RDMAP_IMM), .msn = 1 };

	(void)state;
	expect_terminate(core_responder(), &hdr, "12345678", 8, ctrl);
}

static void terminate_out__read_protection(void **state)
{
	static const uint8_t ctrl[] = { 0x01, 0x00, 0xe0, 0x00 };
	const struct rdmap_read_req req = { 7, 8, 9, 0xbad, 11 };
	struct ddp_hdr hdr = {
		.last = true, .ulp_ctrl = rdmap_ctrl(RDMAP_READ_REQ), .qn = DDP_QN_READ, .msn = 1
	};
	uint8_t payload[28];

	(void)state;
	rdmap_read_req_put(&req, payload);
	expect_terminate(core_responder(), &hdr, payload, 28, ctrl);
}

/* Figure 10: a protection error of a Send has no RDMAP header, even one of 28 octets. */
static void terminate_out__invalidate_protection(void **state)
{
	static const uint8_t ctrl[] = { 0x01, 0x00, 0xc0, 0x00 };
	struct ddp_hdr hdr = {
		.last = true, .ulp_ctrl = rdmap_ctrl(RDMAP_SEND_INV), .ulp_rsvd = 0xbad, .msn = 1
	};
	struct core_end *end = core_responder();

	(void)state;
	core_recv(end, 1, 0, 28);
	expect_terminate(end, &hdr, "0123456789012345678901234567", 28, ctrl);
}

/* RFC 5040 7.1 rule 2: whatever is found wrong on a message, be it this end's own fault, names it. */
static void terminate_out__bad_receive(void **state)
{
	static const uint8_t ctrl[] = { 0x02, 0x07, 0xc0, 0x00 };
	const struct aw_sge bad = { 0, 10, 0xbad };
	struct ddp_hdr hdr = { .last = true, .ulp_ctrl = rdmap_ctrl(RDMAP_SEND), .msn = 1 };
	struct core_end *end = core_responder();

	(void)state;
	assert_true(aw_rq_post(&end->rq, 1, &bad, 1));
	core_inject(end, &hdr, "12345", 5);
	assert_int_equal(end->qp.error, AW_E_LOCAL_CATASTROPHIC);
	core_end_destroy(end);
	end = core_responder();
	assert_true(aw_rq_post(&end->rq, 1, &bad, 1));
	expect_terminate(end, &hdr, "12345", 5, ctrl);
}

static void terminate_out__of_no_message(void **state)
{
	struct core_end *end = core_initiator(1448);
	struct ddp_hdr hdr;
	size_t len;

	(void)state;
	aw_qp_terminate(&end->qp, AW_E_LOCAL_CATASTROPHIC);
	assert_true(core_tx_one(end));
	assert_memory_equal(core_peek(end, &hdr, &len), "\0\0\0\0", 4);
	assert_int_equal(len, 4);
	core_end_destroy(end);
}

static void terminate_out__bad_sink(void **state)
{
	static const uint8_t ctrl[] = { 0x02, 0x07, 0xc0, 0x00 };
	struct ddp_hdr hdr = { .tagged = true,
			       .last = true,
			       .ulp_ctrl = rdmap_ctrl(RDMAP_READ_RESP),
			       .stag = 0x7000 };
	struct core_end *end = core_initiator(1448);

	(void)state;
	core_post(end, AW_OP_READ, 0, 5, 0);
	core_tx(end);
	end->wire_len = 0;
	end->mr[0].access = AW_ACCESS_REMOTE_READ;
	expect_terminate(end, &hdr, "12345", 5, ctrl);
}

/* An initiator that hears a Terminate with these octets of payload. */
static void hear(struct core_end *end, const void *payload, size_t len)
{
	struct ddp_hdr hdr = { .last = true,
			       .ulp_ctrl = rdmap_ctrl(RDMAP_TERMINATE),
			       .qn = DDP_QN_TERMINATE,
			       .msn = 1 };

	core_inject(end, &hdr, payload, len);
}

static void expect(struct core_end *end, enum aw_op op, enum aw_wc_status status)
{
	const struct core_cqe *c = core_cqe(end);

	assert_non_null(c);
	assert_int_equal(c->cqe.wr_id, op);
	assert_int_equal(c->cqe.status, status);
}

static void terminate_in__ends_without_an_answer(void **state)
{
	struct core_end *end = core_initiator(1448);

	(void)state;
	core_post(end, AW_OP_SEND, 0, 10, 0);
	core_recv(end, 1, 0, 10);
	hear(end, "\x12\x02\0\0", 4);
	assert_int_equal(end->qp.state, AW_QP_ERROR);
	assert_int_equal(end->qp.peer_error, AW_E_DDP_NO_BUFFER);
	assert_int_equal(end->qp.error, AW_E_DDP_NO_BUFFER);
	expect(end, AW_OP_SEND, AW_WC_WR_FLUSH_ERR);
	assert_int_equal(core_cqe(end)->queue, AW_RQ);
	assert_false(core_tx_one(end));
	core_end_destroy(end);
}

/* The Read that is named, though an older one has no answer yet. */
static void terminate_in__names_a_read(void **state)
{
	static const struct {
		const char *ctrl;
		enum aw_wc_status status;
	} cases[] = { { "\x01\x01\xe0\0", AW_WC_REM_ACCESS_ERR },
		      { "\x02\x07\xe0\0", AW_WC_REM_OP_ERR } };

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		const struct rdmap_read_req req = { .sink_stag = 0x7001 };
		struct ddp_hdr hdr = { .qn = DDP_QN_READ, .msn = 2 };
		struct core_end *end = core_initiator(1448);
		uint8_t term[6 + 18 + 28] = { 0 };

		core_post(end, AW_OP_READ, 0, 10, 0);
		core_post(end, AW_OP_READ, 0, 10, 0);
		core_tx(end);
		memcpy(term, cases[i].ctrl, 4);
		ddp_put(&hdr, term + 6);
		rdmap_read_req_put(&req, term + 24);
		hear(end, term, sizeof(term));
		expect(end, AW_OP_READ, AW_WC_WR_FLUSH_ERR);
		expect(end, AW_OP_READ, cases[i].status);
		core_end_destroy(end);
	}
}

static void hear_about(struct core_end *end, const uint8_t ctrl[2], const struct ddp_hdr *hdr)
{
	uint8_t term[6 + 18] = { ctrl[0], ctrl[1], 0xc0, 0 };

	hear(end, term, 6 + ddp_put(hdr, term + 6));
}

static void terminate_in__names_a_read_by_msn(void **state)
{
	struct ddp_hdr hdr = { .ulp_ctrl = rdmap_ctrl(RDMAP_READ_REQ),
			       .qn = DDP_QN_READ,
			       .msn = 2 };
	struct core_end *end = core_initiator(1448);

	(void)state;
	core_post(end, AW_OP_READ, 0, 10, 0);
	core_post(end, AW_OP_READ, 0, 10, 0);
	core_tx(end);
	hear_about(end, (const uint8_t *)"\x12\x02", &hdr);
	expect(end, AW_OP_READ, AW_WC_WR_FLUSH_ERR);
	expect(end, AW_OP_READ, AW_WC_REM_OP_ERR);
	core_end_destroy(end);
}

static void terminate_in__names_a_send_or_write(void **state)
{
	static const struct {
		enum aw_op op;
		struct ddp_hdr hdr;
		const char *ctrl;
		enum aw_wc_status status;
	} cases[] = {
		{ AW_OP_SEND, { .ulp_ctrl = 0x43, .msn = 1 }, "\x12\x05", AW_WC_REM_INV_REQ_ERR },
		{ AW_OP_SEND, { .ulp_ctrl = 0x43, .msn = 1 }, "\x12\x02", AW_WC_REM_OP_ERR },
		{ AW_OP_SEND, { .ulp_ctrl = 0x43, .msn = 2 }, "\x12\x02", AW_WC_WR_FLUSH_ERR },
		{ AW_OP_WRITE,
		  { .tagged = true, .ulp_ctrl = 0x40, .stag = CORE_STAG, .to = CORE_IOVA + 9 },
		  "\x11\x01",
		  AW_WC_REM_ACCESS_ERR },
		{ AW_OP_WRITE,
		  { .tagged = true, .ulp_ctrl = 0x40, .stag = CORE_STAG, .to = CORE_IOVA + 9999 },
		  "\x11\x01",
		  AW_WC_WR_FLUSH_ERR },
		{ AW_OP_WRITE,
		  { .tagged = true, .ulp_ctrl = 0x40, .stag = 0x99, .to = CORE_IOVA },
		  "\x11\x00",
		  AW_WC_WR_FLUSH_ERR },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_end *end = core_initiator(1448);

		core_post(end, cases[i].op, 0, 5000, 0);
		core_post(end, AW_OP_SEND_INV, 0, 1, 0); /* not begun, so not to blame */
		assert_true(core_tx_one(end));
		hear_about(end, (const uint8_t *)cases[i].ctrl, &cases[i].hdr);
		expect(end, cases[i].op, cases[i].status);
		expect(end, AW_OP_SEND_INV, AW_WC_WR_FLUSH_ERR);
		core_end_destroy(end);
	}
}

static void terminate_in__not_begun_is_not_to_blame(void **state)
{
	struct ddp_hdr hdr = { .tagged = true,
			       .ulp_ctrl = rdmap_ctrl(RDMAP_WRITE),
			       .stag = CORE_STAG,
			       .to = CORE_IOVA };
	struct core_end *end = core_initiator(1448);

	(void)state;
	core_post(end, AW_OP_WRITE, 0, 10, 0);
	hear_about(end, (const uint8_t *)"\x11\x01", &hdr);
	expect(end, AW_OP_WRITE, AW_WC_WR_FLUSH_ERR);
	core_end_destroy(end);
}

/* A Read that is the RTR has no WR to blame, though the SQ slot of its index is in use. */
static void terminate_in__names_the_rtr(void **state)
{
	(void)state;
	for (int with_read = 0; with_read < 2; with_read++) {
		const struct rdmap_read_req req = { .sink_stag = 0x7000 };
		struct ddp_hdr hdr = { .ulp_ctrl = rdmap_ctrl(RDMAP_READ_REQ),
				       .qn = DDP_QN_READ,
				       .msn = 1 };
		uint8_t term[6 + 18 + 28] = { 0x01, 0x00, with_read ? 0xe0 : 0xc0 };
		struct aw_stream stream = core_stream(true, 1448);
		struct core_end *end;

		stream.p2p = true;
		stream.rtr = MPA_RTR_READ;
		end = core_end_create(&stream);
		core_tx(end);
		core_post(end, AW_OP_SEND, 0, 10, 0);
		ddp_put(&hdr, term + 6);
		rdmap_read_req_put(&req, term + 24);
		hear(end, term, with_read ? sizeof(term) : 24);
		expect(end, AW_OP_SEND, AW_WC_WR_FLUSH_ERR);
		core_end_destroy(end);
	}
}

/* A siw peer on x86 sends its bits the wrong way round: no header is believed. */
static void terminate_in__siw_bits(void **state)
{
	struct core_end *end = core_initiator(1448);

	(void)state;
	core_post(end, AW_OP_READ, 0, 10, 0);
	core_tx(end);
	hear(end, "\x21\x05\x03\x00\x00\x2e", 6);
	assert_int_equal(end->qp.state, AW_QP_ERROR);
	assert_int_equal(end->qp.peer_error, AW_ERROR(2, 1, 5));
	assert_true(end->qp.peer_mirrored);
	expect(end, AW_OP_READ, AW_WC_WR_FLUSH_ERR);
	core_end_destroy(end);
}

static void terminate_in__headers_cut_short(void **state)
{
	struct core_end *end = core_initiator(1448);

	(void)state;
	hear(end, "\x12\x05\xc0\x00\x00", 5);
	assert_int_equal(end->qp.state, AW_QP_ERROR);
	assert_int_equal(end->qp.peer_error, AW_E_DDP_TOO_LONG);
	core_end_destroy(end);
}

static void terminate_in__malformed(void **state)
{
	static const uint8_t term[TERM_MAX + 1] = { 0x12, 0x05 };
	struct ddp_hdr hdr = { .ulp_ctrl = rdmap_ctrl(RDMAP_TERMINATE),
			       .qn = DDP_QN_TERMINATE,
			       .msn = 1 };
	struct core_end *end = core_initiator(1448);

	(void)state;
	hear(end, term, 3);
	assert_int_equal(end->qp.state, AW_QP_TERMINATE);
	assert_int_equal(end->qp.error, AW_E_RDMAP_OP_UNSPECIFIED);
	core_end_destroy(end);
	end = core_initiator(1448);
	hear(end, term, sizeof(term));
	assert_int_equal(end->qp.state, AW_QP_TERMINATE);
	assert_int_equal(end->qp.error, AW_E_DDP_TOO_LONG);
	core_end_destroy(end);
	end = core_initiator(1448);
	core_inject(end, &hdr, term, 4); /* L is not set: more segments would follow */
	assert_int_equal(end->qp.error, AW_E_RDMAP_OP_UNSPECIFIED);
	core_end_destroy(end);
	end = core_initiator(1448);
	hdr.last = true;
	hdr.msn = 2;
	core_inject(end, &hdr, term, 4);
	assert_int_equal(end->qp.error, AW_E_DDP_MSN_RANGE);
	core_end_destroy(end);
}

/* End to end: the reader learns that it may not read there. */
static void terminate__read_without_right(void **state)
{
	struct core_pair *pair = core_pair_ready(1448);

	(void)state;
	core_mr_add(&pair->b, 0x99, AW_ACCESS_LOCAL_WRITE, 0, 100);
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_wr(&pair->a, AW_OP_READ, 0, 10)->stag = 0x99;
	aw_qp_post(&pair->a.qp);
	core_post(&pair->a, AW_OP_SEND, 0, 10, 0);
	core_pump(pair);
	expect(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	expect(&pair->a, AW_OP_READ, AW_WC_REM_ACCESS_ERR);
	assert_int_equal(pair->a.log[1].cqe.vendor_err, AW_E_RDMAP_ACCESS);
	expect(&pair->a, AW_OP_SEND, AW_WC_WR_FLUSH_ERR); /* sent, but who knows */
	assert_int_equal(pair->b.qp.state, AW_QP_TERMINATE);
	assert_true(aw_qp_tx_finished(&pair->b.qp));
	core_pair_destroy(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(terminate_out__untagged_too_long),
		cmocka_unit_test(terminate_out__tagged_bounds),
		cmocka_unit_test(terminate_out__opcode),
		cmocka_unit_test(terminate_out__read_protection),
		cmocka_unit_test(terminate_out__invalidate_protection),
		cmocka_unit_test(terminate_out__bad_receive),
		cmocka_unit_test(terminate_out__bad_sink),
		cmocka_unit_test(terminate_out__of_no_message),
		cmocka_unit_test(terminate_in__ends_without_an_answer),
		cmocka_unit_test(terminate_in__names_a_read),
		cmocka_unit_test(terminate_in__names_a_read_by_msn),
		cmocka_unit_test(terminate_in__names_a_send_or_write),
		cmocka_unit_test(terminate_in__not_begun_is_not_to_blame),
		cmocka_unit_test(terminate_in__names_the_rtr),
		cmocka_unit_test(terminate_in__siw_bits),
		cmocka_unit_test(terminate_in__headers_cut_short),
		cmocka_unit_test(terminate_in__malformed),
		cmocka_unit_test(terminate__read_without_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
