// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a UC QP drops: nothing goes back, the QP lives, and the next message is taken.
#include "../lib/core_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

enum {
	EMSS = 1448,
	LONG = 5000, /* of several segments */
	TARGET = 50000,
	IMM = 0x01020304,
};

static struct core_pair *uc_pair(void)
{
	struct core_pair *pair = core_pair_ready(EMSS);

	pair->a.qp.unreliable = pair->b.qp.unreliable = true;
	pair->a.qp.stream.extensions = pair->b.qp.stream.extensions = true;
	return pair;
}

static struct aw_swqe *post(struct core_pair *pair, enum aw_op op, uint32_t len)
{
	struct aw_swqe *wqe = core_wr(&pair->a, op, 0, len);

	assert_non_null(wqe);
	wqe->to = CORE_IOVA + TARGET;
	wqe->inv_or_imm = IMM;
	return wqe;
}

/* Posts, moves all of it, and expects the sender to know nothing of what becomes of it. */
static void sent(struct core_pair *pair, enum aw_op op, uint32_t len)
{
	post(pair, op, len);
	aw_qp_post(&pair->a.qp);
	core_pump(pair);
	core_expect_sq(&pair->a, op, AW_WC_SUCCESS);
	assert_null(core_cqe(&pair->a));
	assert_int_equal(pair->a.qp.state, AW_QP_RTS);
	assert_int_equal(pair->b.qp.state, AW_QP_RTS);
}

static void received(struct core_pair *pair, uint64_t wr_id, enum aw_op op, uint32_t byte_len)
{
	const struct core_cqe *c = core_cqe(&pair->b);

	assert_non_null(c);
	assert_int_equal(c->queue, AW_RQ);
	assert_int_equal(c->cqe.wr_id, wr_id);
	assert_int_equal(c->cqe.status, AW_WC_SUCCESS);
	assert_int_equal(c->cqe.op, op);
	assert_int_equal(c->cqe.byte_len, byte_len);
	assert_int_equal(c->cqe.flags & AW_WC_WITH_IMM,
			 op == AW_OP_SEND_IMM || op == AW_OP_WRITE_IMM ? AW_WC_WITH_IMM : 0);
}

static void nothing_received(struct core_pair *pair, uint32_t dropped)
{
	assert_null(core_cqe(&pair->b));
	assert_int_equal(pair->b.qp.rx_drop.count, dropped);
}

/* Of one segment, of many, of none; with immediate data and without. The next message of each kind is taken. */
static void send__without_a_receive(void **state)
{
	static const uint32_t lens[] = { 0, 10, LONG };
	static const enum aw_op ops[] = { AW_OP_SEND, AW_OP_SEND_IMM };
	struct core_pair *pair = uc_pair();
	uint32_t dropped = 0;

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		enum aw_op op = ops[i % 2], other = ops[(i + 1) % 2];

		sent(pair, op, lens[i / 2]);
		nothing_received(pair, ++dropped);
		assert_int_equal(pair->b.placed, i);
		core_recv(&pair->b, i, 0, 10);
		sent(pair, other, 10);
		received(pair, i, other, 10);
	}
	core_pair_destroy(pair);
}

/* The program posts a receive in the middle of a message that is dropped: it is the next message's. */
static void send__is_dropped_as_a_whole(void **state)
{
	struct core_pair *pair = uc_pair();

	(void)state;
	post(pair, AW_OP_SEND, LONG);
	aw_qp_post(&pair->a.qp);
	assert_true(core_tx_one(&pair->a));
	core_deliver(&pair->a, &pair->b);
	core_recv(&pair->b, 7, 0, LONG);
	core_pump(pair);
	nothing_received(pair, 1);
	core_expect_sq(&pair->a, AW_OP_SEND, AW_WC_SUCCESS);
	sent(pair, AW_OP_SEND, LONG);
	received(pair, 7, AW_OP_SEND, LONG);
	core_pair_destroy(pair);
}

/* Found at its first segment or at a later one; the receive is the next message's, whatever that is. */
static void send__longer_than_its_receive(void **state)
{
	static const uint32_t rooms[] = { 0, 10, LONG - 1 };
	struct core_pair *pair = uc_pair();

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		core_recv(&pair->b, 2 * i, 0, rooms[i]);
		core_recv(&pair->b, 2 * i + 1, 0, LONG);
		sent(pair, AW_OP_SEND_IMM, LONG);
		nothing_received(pair, i + 1);
		if (i == 1) {
			sent(pair, AW_OP_WRITE_IMM, LONG);
			received(pair, 2 * i, AW_OP_WRITE_IMM, LONG);
		} else {
			sent(pair, AW_OP_SEND, rooms[i]);
			received(pair, 2 * i, AW_OP_SEND, rooms[i]);
		}
		sent(pair, AW_OP_SEND, LONG);
		received(pair, 2 * i + 1, AW_OP_SEND, LONG);
	}
	core_pair_destroy(pair);
}

/* A receive of an SRQ cannot wait here for this QP's next message. */
static void send__longer_than_a_receive_of_an_srq(void **state)
{
	struct core_pair *pair = uc_pair();
	const struct core_cqe *c;

	(void)state;
	pair->b.qp.srq = true;
	core_recv(&pair->b, 1, 0, 10);
	core_recv(&pair->b, 2, 0, 10);
	sent(pair, AW_OP_SEND, LONG);
	c = core_cqe(&pair->b);
	assert_non_null(c);
	assert_int_equal(c->cqe.wr_id, 1);
	assert_int_equal(c->cqe.status, AW_WC_REM_INV_REQ_ERR);
	nothing_received(pair, 1);
	sent(pair, AW_OP_SEND, 10);
	received(pair, 2, AW_OP_SEND, 10);
	core_pair_destroy(pair);
}

/* A receive that was kept is flushed first, and once. */
static void send__longer_than_its_receive_and_the_end(void **state)
{
	struct core_pair *pair = uc_pair();

	(void)state;
	core_recv(&pair->b, 1, 0, 10);
	core_recv(&pair->b, 2, 0, 10);
	sent(pair, AW_OP_SEND, LONG);
	aw_qp_abort(&pair->b.qp, AW_OK);
	for (uint64_t wr_id = 1; wr_id <= 2; wr_id++) {
		const struct core_cqe *c = core_cqe(&pair->b);

		assert_non_null(c);
		assert_int_equal(c->cqe.wr_id, wr_id);
		assert_int_equal(c->cqe.status, AW_WC_WR_FLUSH_ERR);
	}
	assert_null(core_cqe(&pair->b));
	core_pair_destroy(pair);
}

/* Each refusal of a Write, with and without immediate data, which then takes no receive. */
static void write__that_is_refused(void **state)
{
	static const struct {
		uint32_t stag, to, len;
		enum aw_refusal_cause cause;
	} rows[] = {
		{ 0xbad, 0, 10, AW_REFUSAL_STAG },
		{ 0xbad, 0, LONG, AW_REFUSAL_STAG },
		{ 0x99, 0, 10, AW_REFUSAL_MR_RIGHTS },
		{ 0x88, 0, 10, AW_REFUSAL_PD },
		{ CORE_STAG, CORE_MEM - 9, 10, AW_REFUSAL_BOUNDS },
		/* Its last segment alone. */
		{ CORE_STAG, CORE_MEM - LONG + 1, LONG, AW_REFUSAL_BOUNDS },
		{ CORE_STAG, CORE_MEM, LONG, AW_REFUSAL_BOUNDS },
	};
	struct core_pair *pair = uc_pair();
	uint32_t dropped = 0;

	(void)state;
	core_mr_add(&pair->b, 0x99, AW_ACCESS_LOCAL_WRITE, 0, 100);
	core_mr_add(&pair->b, 0x88, ~0u, 0, 100)->pd = &core_other_pd;
	core_recv(&pair->b, 5, 0, 10);
	for (unsigned int i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		enum aw_op op = i % 2 ? AW_OP_WRITE_IMM : AW_OP_WRITE;
		struct aw_swqe *wqe = post(pair, op, rows[i / 2].len);

		wqe->stag = rows[i / 2].stag;
		wqe->to = CORE_IOVA + rows[i / 2].to;
		aw_qp_post(&pair->a.qp);
		core_pump(pair);
		core_expect_sq(&pair->a, op, AW_WC_SUCCESS);
		nothing_received(pair, ++dropped);
		assert_int_equal(pair->b.qp.refusal.cause, rows[i / 2].cause);
		assert_int_equal(pair->b.qp.state, AW_QP_RTS);
	}
	memset(pair->a.mem, 0xab, LONG);
	sent(pair, AW_OP_WRITE_IMM, LONG);
	received(pair, 5, AW_OP_WRITE_IMM, LONG);
	assert_memory_equal(pair->b.mem + TARGET, pair->a.mem, LONG);
	core_pair_destroy(pair);
}

/* The QP grants no Writes. */
static void write__that_the_qp_refuses(void **state)
{
	struct core_pair *pair = uc_pair();

	(void)state;
	pair->b.qp.remote_access = 0;
	sent(pair, AW_OP_WRITE, LONG);
	nothing_received(pair, 1);
	assert_int_equal(pair->b.placed, 0);
	assert_int_equal(pair->b.qp.refusal.cause, AW_REFUSAL_QP_RIGHTS);
	core_pair_destroy(pair);
}

/* What is written is there, as on InfiniBand, where only the last packet needs the receive. */
static void write_imm__without_a_receive(void **state)
{
	static const uint32_t lens[] = { 0, 10, LONG };
	struct core_pair *pair = uc_pair();

	(void)state;
	memset(pair->a.mem, 0xab, LONG);
	for (unsigned int i = 0; i < 3; i++) {
		sent(pair, AW_OP_WRITE_IMM, lens[i]);
		nothing_received(pair, i + 1);
		assert_memory_equal(pair->b.mem + TARGET, pair->a.mem, lens[i]);
	}
	core_recv(&pair->b, 5, 0, 10);
	sent(pair, AW_OP_WRITE_IMM, 20);
	received(pair, 5, AW_OP_WRITE_IMM, 20);
	core_pair_destroy(pair);
}

/* A driver may let a message wait for a moment: it is dropped only when that is over. */
static void send__that_waits_for_its_receive(void **state)
{
	struct core_pair *pair = uc_pair();
	size_t used;

	(void)state;
	pair->b.qp.rnr_holds = true;
	post(pair, AW_OP_SEND, 10);
	aw_qp_post(&pair->a.qp);
	core_tx(&pair->a);
	used = aw_rx_octets(&pair->b.qp, pair->a.wire, pair->a.wire_len);
	assert_int_equal(used, 0);
	assert_true(pair->b.qp.rx_held > 0);
	pair->b.qp.rnr_holds = false;
	core_deliver(&pair->a, &pair->b);
	nothing_received(pair, 1);
	core_pair_destroy(pair);
}

/* A receive whose memory is bad is this end's own fault. */
static void send__into_a_receive_that_is_bad(void **state)
{
	struct core_pair *pair = uc_pair();
	struct aw_sge sge = { CORE_IOVA, 10, 0xbad };

	(void)state;
	assert_true(aw_rq_post(&pair->b.rq, 1, &sge, 1));
	post(pair, AW_OP_SEND, 10);
	aw_qp_post(&pair->a.qp);
	core_pump(pair);
	assert_int_equal(pair->b.log[0].cqe.status, AW_WC_LOC_PROT_ERR);
	assert_int_equal(pair->b.qp.state, AW_QP_TERMINATE);
	/* The peer does not notice. */
	core_expect_sq(&pair->a, AW_OP_SEND, AW_WC_SUCCESS);
	assert_int_equal(pair->a.qp.state, AW_QP_RTS);
	core_pair_destroy(pair);
}

/* A peer that breaks a rule is none of UC. */
static enum aw_error second(enum rdmap_opcode op, uint32_t msn, uint32_t mo)
{
	struct core_end *end = core_responder();
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);
	enum aw_error err;

	end->qp.unreliable = end->qp.stream.extensions = true;
	hdr.last = false;
	assert_int_equal(core_ulpdu(end, &hdr, 4), AW_OK);
	assert_true(end->qp.rx_drop.send);
	hdr = core_untagged(op, DDP_QN_SEND, msn, mo);
	err = core_ulpdu(end, &hdr, RDMAP_IMM_LEN);
	assert_int_equal(end->logged, 0);
	assert_int_equal(end->qp.state, err ? AW_QP_TERMINATE : AW_QP_RTS);
	core_end_destroy(end);
	return err;
}

static void drop__of_what_breaks_a_rule(void **state)
{
	(void)state;
	assert_int_equal(second(RDMAP_SEND, 1, 4), AW_OK);
	assert_int_equal(second(RDMAP_SEND, 1, 0), AW_E_DDP_MO);
	assert_int_equal(second(RDMAP_SEND, 2, 4), AW_E_DDP_MSN_RANGE);
	assert_int_equal(second(RDMAP_IMM, 1, 4), AW_E_RDMAP_OPCODE);
}

/* A message that is longer than any may be. */
static void drop__ends(void **state)
{
	struct core_end *end = core_responder();
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);

	(void)state;
	end->qp.unreliable = true;
	hdr.last = false;
	assert_int_equal(core_ulpdu(end, &hdr, 10), AW_OK);
	end->qp.rx_drop.offset = hdr.mo = AW_MSG_MAX - 10;
	assert_int_equal(core_ulpdu(end, &hdr, 10), AW_OK);
	assert_int_equal(end->qp.rx_drop.offset, AW_MSG_MAX);
	hdr.mo = AW_MSG_MAX;
	assert_int_equal(core_ulpdu(end, &hdr, 1), AW_E_DDP_TOO_LONG);
	assert_int_equal(end->qp.state, AW_QP_TERMINATE);
	core_end_destroy(end);
}

/* A Read finds the QP without that right, which verbs take from a UC QP. */
static void read__is_none_of_uc(void **state)
{
	struct core_pair *pair = uc_pair();

	(void)state;
	pair->b.qp.remote_access = AW_ACCESS_REMOTE_WRITE;
	core_post(&pair->a, AW_OP_READ, 0, 10, 0);
	core_tx(&pair->a);
	core_deliver(&pair->a, &pair->b);
	assert_int_equal(pair->b.qp.state, AW_QP_TERMINATE);
	core_pair_destroy(pair);
}

/* The stream ends within a message: its receive takes the first one of the next stream. */
static void recall__within_a_message(void **state)
{
	struct aw_stream a = core_stream(true, EMSS), b = core_stream(false, EMSS);
	struct core_pair *pair = uc_pair();

	(void)state;
	core_recv(&pair->b, 1, 0, LONG);
	post(pair, AW_OP_SEND, LONG);
	aw_qp_post(&pair->a.qp);
	assert_true(core_tx_one(&pair->a));
	core_deliver(&pair->a, &pair->b);
	assert_true(pair->b.qp.rx_send.active);
	aw_tx_drop(&pair->a.qp);
	core_expect_sq(&pair->a, AW_OP_SEND, AW_WC_SUCCESS);
	aw_qp_recall(&pair->a.qp);
	aw_qp_recall(&pair->b.qp);
	aw_qp_start(&pair->a.qp, &a);
	aw_qp_start(&pair->b.qp, &b);
	sent(pair, AW_OP_SEND, 100);
	received(pair, 1, AW_OP_SEND, 100);
	core_pair_destroy(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send__without_a_receive),
		cmocka_unit_test(send__is_dropped_as_a_whole),
		cmocka_unit_test(send__longer_than_its_receive),
		cmocka_unit_test(send__longer_than_a_receive_of_an_srq),
		cmocka_unit_test(send__longer_than_its_receive_and_the_end),
		cmocka_unit_test(write__that_is_refused),
		cmocka_unit_test(write__that_the_qp_refuses),
		cmocka_unit_test(write_imm__without_a_receive),
		cmocka_unit_test(send__that_waits_for_its_receive),
		cmocka_unit_test(send__into_a_receive_that_is_bad),
		cmocka_unit_test(drop__of_what_breaks_a_rule),
		cmocka_unit_test(drop__ends),
		cmocka_unit_test(read__is_none_of_uc),
		cmocka_unit_test(recall__within_a_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
