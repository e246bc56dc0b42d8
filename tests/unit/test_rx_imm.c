// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Immediate data (RFC 7306 6) as two anywarp ends use it (docs/extensions.md), as it arrives: what
// comes of it, and each way in which a peer may get it wrong.
#include "../lib/core_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static struct core_pair *extended_pair(uint32_t emss)
{
	struct core_pair *pair = core_pair_ready(emss);

	pair->a.qp.stream.extensions = pair->b.qp.stream.extensions = true;
	return pair;
}

static struct core_end *extended_responder(void)
{
	struct core_end *end = core_responder();

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

static const struct aw_cqe *received(struct core_end *end, enum aw_op op, uint32_t byte_len)
{
	const struct core_cqe *c = core_cqe(end);

	assert_non_null(c);
	assert_int_equal(c->queue, AW_RQ);
	assert_int_equal(c->cqe.status, AW_WC_SUCCESS);
	assert_int_equal(c->cqe.op, op);
	assert_int_equal(c->cqe.byte_len, byte_len);
	return &c->cqe;
}

static void write_imm__completes_a_receive(void **state)
{
	static const uint32_t lens[] = { 0, 1, 2000, 40000 };

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct core_pair *pair = extended_pair(1448);
		const struct aw_cqe *cqe;

		memset(pair->a.mem, 0xab, 40000);
		core_recv(&pair->b, 7, 0, 4); /* smaller than what is written */
		post(&pair->a, AW_OP_WRITE_IMM, lens[i], i & 1 ? AW_WR_SOLICITED : 0);
		core_pump(pair);
		cqe = received(&pair->b, AW_OP_WRITE_IMM, lens[i]);
		assert_int_equal(cqe->wr_id, 7);
		assert_int_equal(cqe->inv_or_imm, 0x01020304);
		assert_int_equal(cqe->flags, AW_WC_WITH_IMM | (i & 1 ? AW_WC_SOLICITED : 0));
		assert_memory_equal(pair->b.mem + 50000, pair->a.mem, lens[i]);
		assert_int_equal(pair->b.mem[0], 0); /* not touched */
		core_expect_sq(&pair->a, AW_OP_WRITE_IMM, AW_WC_SUCCESS);
		assert_null(core_cqe(&pair->a));
		assert_null(core_cqe(&pair->b));
		core_pair_destroy(pair);
	}
}

static void expect_receive_status(struct core_end *end, uint64_t wr_id, enum aw_wc_status status)
{
	const struct core_cqe *c = core_cqe(end);

	assert_non_null(c);
	assert_int_equal(c->queue, AW_RQ);
	assert_int_equal(c->cqe.wr_id, wr_id);
	assert_int_equal(c->cqe.status, status);
}

/* As on InfiniBand, the receive that it would have completed fails; of a Write without one none does. */
static void write_imm__refused_fails_its_receive(void **state)
{
	static const struct {
		enum aw_op op;
		uint32_t len;
		enum aw_wc_status status;
	} cases[] = {
		{ AW_OP_WRITE_IMM, 20, AW_WC_LOC_ACCESS_ERR },
		{ AW_OP_WRITE_IMM, 40000, AW_WC_LOC_ACCESS_ERR },
		{ AW_OP_WRITE, 20, AW_WC_WR_FLUSH_ERR },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_pair *pair = extended_pair(1448);
		struct aw_swqe *wqe = core_wr(&pair->a, cases[i].op, 0, cases[i].len);

		core_recv(&pair->b, 7, 0, 4);
		core_recv(&pair->b, 8, 0, 4);
		wqe->stag = 0xbad;
		aw_qp_post(&pair->a.qp);
		core_pump(pair);
		expect_receive_status(&pair->b, 7, cases[i].status);
		expect_receive_status(&pair->b, 8, AW_WC_WR_FLUSH_ERR);
		assert_null(core_cqe(&pair->b));
		assert_int_equal(pair->b.qp.error, AW_E_DDP_TAGGED_STAG);
		core_pair_destroy(pair);
	}
}

/* Without a receive there is none that fails; without the agreement the bit says nothing. */
static void write_imm__refused_without_a_receive_or_agreement(void **state)
{
	struct core_pair *pair = extended_pair(1448);
	struct aw_swqe *wqe = core_wr(&pair->a, AW_OP_WRITE_IMM, 0, 20);
	struct ddp_hdr hdr = core_tagged(RDMAP_WRITE, 0xbad, 0);
	struct core_end *end = core_responder();

	(void)state;
	wqe->stag = 0xbad;
	aw_qp_post(&pair->a.qp);
	core_pump(pair);
	assert_int_equal(pair->b.logged, 0);
	assert_int_equal(pair->b.qp.error, AW_E_DDP_TAGGED_STAG);
	core_pair_destroy(pair);

	core_recv(end, 7, 0, 4);
	hdr.ulp_ctrl |= RDMAP_CTRL_IMM;
	core_inject(end, &hdr, core_data, 4);
	aw_qp_abort(&end->qp, AW_OK);
	expect_receive_status(end, 7, AW_WC_WR_FLUSH_ERR);
	core_end_destroy(end);
}

static void send_imm__completes_a_receive(void **state)
{
	static const uint32_t lens[] = { 0, 1, 40000 };

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct core_pair *pair = extended_pair(1448);
		const struct aw_cqe *cqe;

		memset(pair->a.mem, 0xab, 40000);
		core_recv(&pair->b, 7, 50000, 40000);
		core_recv(&pair->b, 8, 0, 4);
		post(&pair->a, AW_OP_SEND_IMM, lens[i], i & 1 ? AW_WR_SOLICITED : 0);
		core_post(&pair->a, AW_OP_SEND, 0, 4, 0);
		core_pump(pair);
		cqe = received(&pair->b, AW_OP_SEND_IMM, lens[i]);
		assert_int_equal(cqe->wr_id, 7);
		assert_int_equal(cqe->inv_or_imm, 0x01020304);
		assert_int_equal(cqe->flags, AW_WC_WITH_IMM | (i & 1 ? AW_WC_SOLICITED : 0));
		assert_memory_equal(pair->b.mem + 50000, pair->a.mem, lens[i]);
		assert_int_equal(received(&pair->b, AW_OP_SEND, 4)->flags, 0);
		core_expect_sq(&pair->a, AW_OP_SEND_IMM, AW_WC_SUCCESS);
		core_pair_destroy(pair);
	}
}

static void imm__inline_and_unsignalled(void **state)
{
	static const enum aw_op ops[] = { AW_OP_WRITE_IMM, AW_OP_SEND_IMM };

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct core_pair *pair = extended_pair(1448);
		struct aw_swqe *wqe = core_wr(&pair->a, ops[i], 0, 5);

		core_recv(&pair->b, 7, 50000, 100);
		wqe->to = CORE_IOVA + 50000;
		wqe->flags = AW_WR_INLINE;
		wqe->sge_count = 0;
		memcpy(wqe->data, "12345", 5);
		aw_qp_post(&pair->a.qp);
		core_pump(pair);
		received(&pair->b, ops[i], 5);
		assert_memory_equal(pair->b.mem + 50000, "12345", 5);
		assert_int_equal(pair->a.logged, 0);
		assert_int_equal(aw_sq_count(&pair->a.qp.sq), 0);
		core_pair_destroy(pair);
	}
}

static enum aw_error immediate(struct core_end *end, enum rdmap_opcode op, uint32_t msn,
			       uint32_t length)
{
	struct ddp_hdr hdr = core_untagged(op, DDP_QN_SEND, msn, 0);
	const struct rdmap_imm imm = { 0x01020304, length };
	uint8_t p[DDP_UNTAGGED_LEN + RDMAP_IMM_LEN];

	ddp_put(&hdr, p);
	rdmap_imm_put(&imm, p + DDP_UNTAGGED_LEN);
	return aw_rx_ulpdu(&end->qp, p, sizeof(p));
}

static enum aw_error send(struct core_end *end, enum rdmap_opcode op, uint32_t msn)
{
	struct ddp_hdr hdr = core_untagged(op, DDP_QN_SEND, msn, 0);

	return core_ulpdu(end, &hdr, 3);
}

static enum aw_error write(struct core_end *end, bool last, size_t len)
{
	struct ddp_hdr hdr = core_tagged(RDMAP_WRITE, CORE_STAG, CORE_IOVA);

	hdr.last = last;
	return core_ulpdu(end, &hdr, len);
}

static void immediate_in__not_agreed_on(void **state)
{
	struct core_end *end = core_responder();

	(void)state;
	core_recv(end, 1, 0, 10);
	assert_int_equal(immediate(end, RDMAP_IMM, 1, 0), AW_E_RDMAP_OPCODE);
	core_end_destroy(end);
}

/* RFC 7306 6.3: exactly 8 octets; of nothing else does a receive come to an end. */
static void immediate_in__size(void **state)
{
	static const struct {
		size_t len;
		bool last;
		enum aw_error err;
	} cases[] = { { 8, true, AW_OK },
		      { 7, true, AW_E_RDMAP_OP_UNSPECIFIED },
		      { 9, true, AW_E_RDMAP_OP_UNSPECIFIED },
		      { 0, true, AW_E_RDMAP_OP_UNSPECIFIED },
		      { 8, false, AW_E_RDMAP_OP_UNSPECIFIED } };

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_end *end = extended_responder();
		struct ddp_hdr hdr = core_untagged(RDMAP_IMM, DDP_QN_SEND, 1, 0);
		uint8_t p[DDP_UNTAGGED_LEN + 9] = { 0 };

		core_recv(end, 1, 0, 10);
		hdr.last = cases[i].last;
		ddp_put(&hdr, p);
		assert_int_equal(aw_rx_ulpdu(&end->qp, p, DDP_UNTAGGED_LEN + cases[i].len),
				 cases[i].err);
		if (cases[i].err)
			assert_int_equal(core_cqe(end)->cqe.status, AW_WC_WR_FLUSH_ERR);
		else
			received(end, AW_OP_WRITE_IMM, 0);
		core_end_destroy(end);
	}
}

static void immediate_in__no_receive(void **state)
{
	struct core_end *end = extended_responder();

	(void)state;
	assert_int_equal(immediate(end, RDMAP_IMM, 1, 0), AW_E_DDP_NO_BUFFER);
	core_end_destroy(end);
	/* One that belongs to a Send takes none. */
	end = extended_responder();
	assert_int_equal(immediate(end, RDMAP_IMM, 1, UINT32_MAX), AW_OK);
	assert_int_equal(send(end, RDMAP_SEND, 2), AW_E_DDP_NO_BUFFER);
	core_end_destroy(end);
}

/* The program is told of no more octets than one Write has brought. */
static void immediate_in__length(void **state)
{
	static const struct {
		uint32_t before; /* octets written, by a whole Write */
		uint32_t length;
		enum aw_error err;
	} cases[] = {
		{ 0, 1, AW_E_RDMAP_OP_UNSPECIFIED },
		{ 10, 10, AW_OK },
		{ 10, 0, AW_OK }, /* a Write of its own, of nothing, that was not sent */
		{ 10, 11, AW_E_RDMAP_OP_UNSPECIFIED },
		{ 10, 9, AW_E_RDMAP_OP_UNSPECIFIED },
		{ 10, AW_MSG_MAX, AW_E_RDMAP_OP_UNSPECIFIED },
		{ 10, UINT32_MAX - 1, AW_E_RDMAP_OP_UNSPECIFIED },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_end *end = extended_responder();

		core_recv(end, 1, 0, 10);
		assert_int_equal(write(end, true, 5), AW_OK);
		if (cases[i].before > 0)
			assert_int_equal(write(end, true, cases[i].before), AW_OK);
		assert_int_equal(immediate(end, RDMAP_IMM, 1, cases[i].length), cases[i].err);
		core_end_destroy(end);
	}
}

/* 2^31 is a message, one more is none, however much was written. */
static void immediate_in__length_bound(void **state)
{
	(void)state;
	for (uint32_t over = 0; over < 2; over++) {
		struct core_end *end = extended_responder();

		core_recv(end, 1, 0, 10);
		assert_int_equal(write(end, false, 10), AW_OK);
		end->qp.rx_imm.write_len = AW_MSG_MAX - 1 + over;
		assert_int_equal(write(end, true, 1), AW_OK);
		assert_int_equal(immediate(end, RDMAP_IMM, 1, AW_MSG_MAX + over),
				 over ? AW_E_RDMAP_OP_UNSPECIFIED : AW_OK);
		core_end_destroy(end);
	}
}

static void immediate_in__write_of_many_segments(void **state)
{
	struct core_end *end = extended_responder();

	(void)state;
	core_recv(end, 1, 0, 10);
	core_recv(end, 2, 0, 10);
	assert_int_equal(write(end, false, 100), AW_OK);
	assert_int_equal(write(end, false, 0), AW_OK);
	assert_int_equal(write(end, true, 11), AW_OK);
	assert_int_equal(immediate(end, RDMAP_IMM, 1, 111), AW_OK);
	received(end, AW_OP_WRITE_IMM, 111);
	/* Each Write is completed once. */
	assert_int_equal(immediate(end, RDMAP_IMM, 2, 111), AW_E_RDMAP_OP_UNSPECIFIED);
	core_end_destroy(end);
	/* And only when it has ended. */
	end = extended_responder();
	core_recv(end, 1, 0, 10);
	assert_int_equal(write(end, false, 100), AW_OK);
	assert_int_equal(immediate(end, RDMAP_IMM, 1, 100), AW_E_RDMAP_OP_UNSPECIFIED);
	core_end_destroy(end);
}

/* A Write that failed was none. */
static void immediate_in__behind_a_write_of_nothing_to_nowhere(void **state)
{
	struct ddp_hdr hdr = core_tagged(RDMAP_WRITE, 0xbad, 0);
	struct core_end *end = extended_responder();

	(void)state;
	core_recv(end, 1, 0, 10);
	assert_int_equal(core_ulpdu(end, &hdr, 0), AW_OK);
	assert_int_equal(immediate(end, RDMAP_IMM, 1, 0), AW_OK);
	core_end_destroy(end);
}

static void immediate_in__what_must_follow(void **state)
{
	static const struct {
		enum rdmap_opcode op;
		enum aw_error err;
	} cases[] = {
		{ RDMAP_SEND, AW_OK },
		{ RDMAP_SEND_SE, AW_OK },
		{ RDMAP_SEND_INV, AW_E_RDMAP_OPCODE },
		{ RDMAP_SEND_SE_INV, AW_E_RDMAP_OPCODE },
		{ RDMAP_IMM, AW_E_RDMAP_OPCODE },
		{ RDMAP_IMM_SE, AW_E_RDMAP_OPCODE },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct core_end *end = extended_responder();
		bool imm = cases[i].op >= RDMAP_IMM;

		core_recv(end, 1, 0, 10);
		assert_int_equal(immediate(end, RDMAP_IMM, 1, UINT32_MAX), AW_OK);
		assert_int_equal(write(end, true, 10), AW_OK); /* of another queue: it may */
		assert_int_equal(imm ? immediate(end, cases[i].op, 2, 0)
				     : send(end, cases[i].op, 2),
				 cases[i].err);
		if (cases[i].err)
			assert_int_equal(core_cqe(end)->cqe.status, AW_WC_WR_FLUSH_ERR);
		else
			received(end, AW_OP_SEND_IMM, 3);
		core_end_destroy(end);
	}
}

static void immediate_in__solicited_is_the_sends(void **state)
{
	struct core_end *end = extended_responder();

	(void)state;
	assert_int_equal(immediate(end, RDMAP_IMM_SE, 1, UINT32_MAX), AW_E_RDMAP_OP_UNSPECIFIED);
	core_end_destroy(end);
}

/* One that keeps to its own MO of 0 is found by DDP, which wants the rest of the Send there. */
static void immediate_in__in_the_middle_of_a_send(void **state)
{
	static const struct {
		uint32_t begun, mo;
		enum aw_error err;
	} cases[] = {
		{ 8, 0, AW_E_DDP_MO },
		{ 8, 8, AW_E_RDMAP_OPCODE },
		{ 0, 0, AW_E_RDMAP_OPCODE },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);
		struct core_end *end = extended_responder();

		core_recv(end, 1, 0, 10);
		hdr.last = false;
		assert_int_equal(core_ulpdu(end, &hdr, cases[i].begun), AW_OK);
		hdr = core_untagged(RDMAP_IMM, DDP_QN_SEND, 1, cases[i].mo);
		assert_int_equal(core_ulpdu(end, &hdr, 8), cases[i].err);
		core_end_destroy(end);
	}
}

/* RFC 6581 9.2: the empty Send that is an RTR stays one, whatever was agreed on. */
static void immediate_in__behind_an_rtr(void **state)
{
	struct aw_stream stream = core_stream(false, 1448);
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);
	struct core_end *end;

	(void)state;
	stream.extensions = stream.p2p = true;
	stream.rtr = MPA_RTR_SEND;
	end = core_end_create(&stream);
	core_recv(end, 1, 0, 10);
	assert_int_equal(core_ulpdu(end, &hdr, 0), AW_OK);
	assert_int_equal(immediate(end, RDMAP_IMM, 2, UINT32_MAX), AW_OK);
	hdr.msn = 3;
	assert_int_equal(core_ulpdu(end, &hdr, 0), AW_OK);
	received(end, AW_OP_SEND_IMM, 0);
	core_end_destroy(end);
}

/* RFC 7306 8.1 rule 2: the DDP header, and no RDMA header. */
static void immediate_in__terminate(void **state)
{
	struct core_end *end = extended_responder();
	struct ddp_hdr hdr;
	const uint8_t *term;
	size_t len;

	(void)state;
	assert_int_equal(immediate(end, RDMAP_IMM_SE, 1, 5), AW_E_RDMAP_OP_UNSPECIFIED);
	assert_true(core_tx_one(end));
	term = core_peek(end, &hdr, &len);
	assert_int_equal(hdr.qn, DDP_QN_TERMINATE);
	assert_int_equal(len, 4 + 2 + 18);
	assert_memory_equal(term, "\x02\xff\xc0\x00\x00\x1a\x41\x49", 8);
	core_end_destroy(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_imm__completes_a_receive),
		cmocka_unit_test(write_imm__refused_fails_its_receive),
		cmocka_unit_test(write_imm__refused_without_a_receive_or_agreement),
		cmocka_unit_test(send_imm__completes_a_receive),
		cmocka_unit_test(imm__inline_and_unsignalled),
		cmocka_unit_test(immediate_in__not_agreed_on),
		cmocka_unit_test(immediate_in__size),
		cmocka_unit_test(immediate_in__no_receive),
		cmocka_unit_test(immediate_in__length),
		cmocka_unit_test(immediate_in__length_bound),
		cmocka_unit_test(immediate_in__write_of_many_segments),
		cmocka_unit_test(immediate_in__behind_a_write_of_nothing_to_nowhere),
		cmocka_unit_test(immediate_in__what_must_follow),
		cmocka_unit_test(immediate_in__solicited_is_the_sends),
		cmocka_unit_test(immediate_in__in_the_middle_of_a_send),
		cmocka_unit_test(immediate_in__behind_an_rtr),
		cmocka_unit_test(immediate_in__terminate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
