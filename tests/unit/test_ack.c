// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completions that wait until the peer has processed what was sent.
#include "../lib/core_pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void ack__write_waits_for_the_answer(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	(void)state;
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_tx(&pair->a);
	assert_int_equal(pair->a.logged, 0);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

/* One request behind the burst, not one for each. */
static void ack__one_for_all(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	(void)state;
	for (int i = 0; i < 5; i++)
		core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_tx(&pair->a);
	assert_int_equal(pair->a.qp.orq_count, 1);
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_tx(&pair->a);
	assert_int_equal(pair->a.qp.orq_count, 1);
	core_pump(pair);
	for (int i = 0; i < 6; i++)
		core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

/* A Read of the program's says as much. */
static void ack__read_is_one(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	(void)state;
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_post(&pair->a, AW_OP_READ, 0, 10, 0);
	core_tx(&pair->a);
	assert_int_equal(pair->a.qp.orq_count, 1);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

static void ack__unsignalled_asks_for_none(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);
	struct aw_swqe *wqe = core_wr(&pair->a, AW_OP_WRITE, 0, 10);

	(void)state;
	wqe->flags = 0;
	aw_qp_post(&pair->a.qp);
	core_tx(&pair->a);
	assert_int_equal(pair->a.qp.orq_count, 0);
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	assert_null(core_cqe(&pair->a));
	core_pair_destroy(pair);
}

/* The slots of a queue that signals nothing come back all the same. */
static void ack__unsignalled_fill_the_queue(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	(void)state;
	for (int i = 0; i < 4 * CORE_SQ; i++) {
		struct aw_swqe *wqe = core_wr(&pair->a, AW_OP_WRITE, 0, 10);

		assert_non_null(wqe);
		wqe->flags = 0;
		aw_qp_post(&pair->a.qp);
		core_pump(pair);
	}
	core_pair_destroy(pair);
}

/* No Read may be outstanding: TCP's word has to do. */
static void ack__not_without_depth(void **state)
{
	struct core_pair *pair = core_pair_acking(0);

	(void)state;
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_tx(&pair->a);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

static void post_write(struct core_end *end, uint32_t stag, uint32_t len)
{
	struct aw_swqe *wqe = core_wr(end, AW_OP_WRITE, 0, len);

	wqe->stag = stag;
	aw_qp_post(&end->qp);
}

static void expect_many(struct core_end *end, enum aw_op op, enum aw_wc_status status, int count)
{
	for (int i = 0; i < count; i++)
		core_expect_sq(end, op, status);
}

/* What was posted before a message that the peer refuses is there, and says so. */
static void ack__refused_write_leaves_those_before(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	(void)state;
	for (int i = 0; i < 8; i++)
		core_post(&pair->a, AW_OP_WRITE, 0, 10, (uint32_t)i * 10);
	post_write(&pair->a, 0xbad, 10);
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 90);
	core_pump(pair);
	expect_many(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS, 8);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_REM_ACCESS_ERR);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_WR_FLUSH_ERR);
	core_pair_destroy(pair);
}

/* Each Send but the last one into a receive that has room for it. */
static void send_in_vain(struct core_pair *pair, enum aw_wc_status status)
{
	for (int i = 0; i < 6; i++)
		core_post(&pair->a, AW_OP_SEND, 0, 10, 0);
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_pump(pair);
	expect_many(&pair->a, AW_OP_SEND, AW_WC_SUCCESS, 5);
	core_expect_sq(&pair->a, AW_OP_SEND, status);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_WR_FLUSH_ERR);
	core_pair_destroy(pair);
}

static struct core_pair *pair_with_receives(void)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	for (int i = 0; i < 5; i++)
		core_recv(&pair->b, 1, 0, 10);
	return pair;
}

static void ack__no_receive(void **state)
{
	(void)state;
	send_in_vain(pair_with_receives(), AW_WC_RNR_RETRY_EXC_ERR);
}

static void ack__receive_is_short(void **state)
{
	struct core_pair *pair = pair_with_receives();

	(void)state;
	core_recv(&pair->b, 1, 0, 9);
	send_in_vain(pair, AW_WC_REM_INV_REQ_ERR);
}

/* The receiver's own fault; the Send that met it is named all the same. */
static void ack__receive_is_bad(void **state)
{
	const struct aw_sge bad = { 0, 10, 0xbad };
	struct core_pair *pair = pair_with_receives();

	(void)state;
	assert_true(aw_rq_post(&pair->b.rq, 1, &bad, 1));
	send_in_vain(pair, AW_WC_REM_OP_ERR);
}

/* Two Writes to one place, of which the headers do not tell which: the older one is not a success. */
static void ack__either_of_two_writes(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	(void)state;
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 50);
	for (int i = 0; i < 3; i++)
		core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	for (int i = 0; i < 3; i++) {
		assert_true(core_tx_one(&pair->a));
		core_deliver(&pair->a, &pair->b);
	}
	pair->b.mr[0].access = 0;
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_REM_ACCESS_ERR);
	expect_many(&pair->a, AW_OP_WRITE, AW_WC_WR_FLUSH_ERR, 2);
	core_pair_destroy(pair);
}

/* Where one of them begins at the same place, the segment's length tells. */
static void ack__length_tells_writes_apart(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	(void)state;
	core_mr_add(&pair->b, 0x99, AW_ACCESS_LOCAL_WRITE | AW_ACCESS_REMOTE_WRITE, 0, 1000);
	for (uint32_t len = 1000; len <= 3000; len += 1000) {
		struct aw_swqe *wqe = core_wr(&pair->a, AW_OP_WRITE, 0, len);

		wqe->stag = 0x99;
		wqe->to = CORE_IOVA;
		aw_qp_post(&pair->a.qp);
	}
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_REM_ACCESS_ERR);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_WR_FLUSH_ERR);
	core_pair_destroy(pair);
}

static void named_one_is_gone(bool binds)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	post_write(&pair->a, 0xbad, 10);
	pair->a.qp.rx_held = 1;
	assert_true(core_tx_one(&pair->a));
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	pair->a.qp.rx_held = 0;
	if (binds) {
		core_post(&pair->a, AW_OP_BIND_MW, 0, 10, 0);
		core_tx(&pair->a);
		core_expect_sq(&pair->a, AW_OP_BIND_MW, AW_WC_SUCCESS);
	}
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 50);
	post_write(&pair->a, 0xbad, 10);
	core_tx(&pair->a);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_WR_FLUSH_ERR);
	core_pair_destroy(pair);
}

/*
 * One that completed on TCP's word alone may be the one that is named: of those behind it, which look
 * alike, none is a success.
 */
static void ack__named_one_may_be_gone(void **state)
{
	(void)state;
	named_one_is_gone(false);
}

static void ack__named_one_may_be_gone_before_a_bind(void **state)
{
	(void)state;
	named_one_is_gone(true);
}

/* As on InfiniBand, what was asked for before is answered before. */
static void ack__reads_before_are_answered(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	(void)state;
	core_post(&pair->a, AW_OP_READ, 0, 5000, 0);
	core_post(&pair->a, AW_OP_FETCH_ADD, 0, 8, 0);
	core_post(&pair->a, AW_OP_SEND, 0, 10, 0);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_FETCH_ADD, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_SEND, AW_WC_RNR_RETRY_EXC_ERR);
	core_pair_destroy(pair);
}

static void ack__refused_read_leaves_those_before(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	(void)state;
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_post(&pair->a, AW_OP_READ, 0, 10, 0);
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_wr(&pair->a, AW_OP_READ, 0, 10)->stag = 0xbad;
	aw_qp_post(&pair->a.qp);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_REM_ACCESS_ERR);
	core_pair_destroy(pair);
}

/* What cannot be answered any more does not hold the Terminate up. */
static void ack__answer_fails_before_the_terminate(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	(void)state;
	core_post(&pair->a, AW_OP_READ, 0, 10, 0);
	core_post(&pair->a, AW_OP_SEND, 0, 10, 0);
	core_tx(&pair->a);
	core_deliver(&pair->a, &pair->b);
	pair->b.mr[0].access = 0;
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_WR_FLUSH_ERR);
	core_expect_sq(&pair->a, AW_OP_SEND, AW_WC_RNR_RETRY_EXC_ERR);
	core_pair_destroy(pair);
}

/* A forged Terminate for what was never sent: no octet that is lent to TCP goes back. */
static void ack__named_before_it_was_sent(void **state)
{
	struct ddp_hdr hdr = { .last = true,
			       .ulp_ctrl = rdmap_ctrl(RDMAP_TERMINATE),
			       .qn = DDP_QN_TERMINATE,
			       .msn = 1 };
	const struct ddp_hdr named = { .ulp_ctrl = rdmap_ctrl(RDMAP_SEND), .msn = 1 };
	struct core_pair *pair = core_pair_acking(CORE_READS);
	uint8_t term[6 + DDP_UNTAGGED_LEN] = { 0x12, 0x02, 0xc0 };

	(void)state;
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_post(&pair->a, AW_OP_SEND, 0, 10, 0);
	core_tx(&pair->a);
	pair->a.qp.sent_pos = 0;
	ddp_put(&named, term + 6);
	core_inject(&pair->a, &hdr, term, sizeof(term));
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_WR_FLUSH_ERR);
	core_expect_sq(&pair->a, AW_OP_SEND, AW_WC_RNR_RETRY_EXC_ERR);
	core_pair_destroy(pair);
}

/* A fault of this end's own waits until what was posted before is known to be there. */
static void ack__own_fault_leaves_those_before(void **state)
{
	(void)state;
	for (uint32_t len = 10; len <= 5000; len += 4990) {
		struct core_pair *pair = core_pair_acking(CORE_READS);

		core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
		core_wr(&pair->a, AW_OP_WRITE, 0, 10)->flags = 0;
		aw_qp_post(&pair->a.qp);
		core_wr(&pair->a, AW_OP_WRITE, 0, len)->sge[0].lkey = 0xbad;
		aw_qp_post(&pair->a.qp);
		core_tx(&pair->a);
		assert_int_equal(pair->a.qp.state, AW_QP_RTS);
		core_pump(pair);
		core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
		core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_LOC_PROT_ERR);
		assert_int_equal(pair->a.qp.error, AW_E_LOCAL_CATASTROPHIC);
		assert_false(pair->a.qp.term_due);
		assert_int_equal(pair->b.qp.state, AW_QP_RTS);
		core_pair_destroy(pair);
	}
}

/* Local operations, too. After a FIN nothing would be heard any more. */
static void ack__own_fault_of_a_bind(void **state)
{
	(void)state;
	for (int closed = 0; closed < 2; closed++) {
		struct core_pair *pair = core_pair_acking(CORE_READS);

		pair->a.bind_status = AW_WC_MW_BIND_ERR;
		core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
		core_post(&pair->a, AW_OP_BIND_MW, 0, 10, 0);
		if (closed)
			aw_qp_peer_closed(&pair->a.qp, 0);
		core_tx(&pair->a);
		assert_int_equal(pair->a.logged, closed ? 2 : 0);
		core_pump(pair);
		core_expect_sq(&pair->a, AW_OP_WRITE, closed ? AW_WC_WR_FLUSH_ERR : AW_WC_SUCCESS);
		core_expect_sq(&pair->a, AW_OP_BIND_MW, AW_WC_MW_BIND_ERR);
		core_pair_destroy(pair);
	}
}

/* What is done here and now is nothing to wait for. */
static void ack__own_fault_behind_a_local_one(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	(void)state;
	core_mr_add(&pair->a, 0x99, 0, 0, 1);
	core_wr(&pair->a, AW_OP_LOCAL_INV, 0, 0)->stag = 0x99;
	aw_qp_post(&pair->a.qp);
	pair->a.bind_status = AW_WC_MW_BIND_ERR;
	core_post(&pair->a, AW_OP_BIND_MW, 0, 10, 0);
	core_tx(&pair->a);
	core_expect_sq(&pair->a, AW_OP_LOCAL_INV, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_BIND_MW, AW_WC_MW_BIND_ERR);
	core_pair_destroy(pair);
}

/* Its Terminate names no message. */
static void ack__peer_fails_by_itself(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	(void)state;
	core_post(&pair->a, AW_OP_SEND, 0, 10, 0);
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_tx(&pair->a);
	aw_qp_terminate(&pair->b.qp, AW_E_LOCAL_CATASTROPHIC);
	core_tx(&pair->b);
	core_deliver(&pair->b, &pair->a);
	core_expect_sq(&pair->a, AW_OP_SEND, AW_WC_REM_OP_ERR);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_WR_FLUSH_ERR);
	core_pair_destroy(pair);
}

/* Nobody waits for the peer: what TCP took of unsignalled WRs is not waited for, nor what did not go out. */
static void ack__peer_fails_by_itself_unnoticed(void **state)
{
	(void)state;
	for (int halted = 0; halted < 2; halted++) {
		struct core_pair *pair = core_pair_acking(CORE_READS);

		core_wr(&pair->a, AW_OP_SEND, 0, 10)->flags = 0;
		aw_qp_post(&pair->a.qp);
		core_tx(&pair->a);
		pair->a.qp.sq_halts = halted;
		if (halted)
			core_post(&pair->a, AW_OP_SEND, 0, 10, 0);
		aw_qp_terminate(&pair->b.qp, AW_E_LOCAL_CATASTROPHIC);
		core_tx(&pair->b);
		core_deliver(&pair->b, &pair->a);
		assert_int_equal(pair->a.qp.state, AW_QP_RTS);
		assert_int_equal(pair->a.qp.peer_error, AW_OK);
		assert_int_equal(pair->a.logged, 0);
		core_pair_destroy(pair);
	}
}

/* A Read is waited for, whether it is signalled or not. */
static void ack__peer_fails_by_itself_before_it_answers(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	(void)state;
	core_wr(&pair->a, AW_OP_READ, 0, 10)->flags = 0;
	aw_qp_post(&pair->a.qp);
	core_tx(&pair->a);
	aw_qp_terminate(&pair->b.qp, AW_E_LOCAL_CATASTROPHIC);
	core_tx(&pair->b);
	core_deliver(&pair->b, &pair->a);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_REM_OP_ERR);
	core_pair_destroy(pair);
}

/* It names what this end answered, or what it could not take of ours itself: of ours the oldest failed. */
static void ack__peer_could_not_take_an_answer(void **state)
{
	/* Of a tagged buffer the STag is invalid; an RDMAP error that is of no kind; a message too long. */
	static const uint8_t kinds[3][2] = { { 0x11, 0x00 }, { 0x02, 0x08 }, { 0x12, 0x05 } };
	const struct ddp_hdr named = core_tagged(RDMAP_READ_RESP, 0x77, 0);

	(void)state;
	for (int i = 0; i < 3; i++) {
		uint8_t term[6 + DDP_TAGGED_LEN] = { kinds[i][0], kinds[i][1], 0xc0 };
		const struct ddp_hdr hdr = core_untagged(RDMAP_TERMINATE, DDP_QN_TERMINATE, 1, 0);
		struct core_pair *pair = core_pair_acking(CORE_READS);

		core_post(&pair->a, AW_OP_FETCH_ADD, 0, 8, 0);
		core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
		core_tx(&pair->a);
		ddp_put(&named, term + 6);
		core_inject(&pair->a, &hdr, term, sizeof(term));
		core_expect_sq(&pair->a, AW_OP_FETCH_ADD, AW_WC_REM_OP_ERR);
		core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_WR_FLUSH_ERR);
		core_pair_destroy(pair);
	}
}

/* What was refused stays refused, however often it is looked at before it may say so. */
static void ack__refused_bind_is_not_run_again(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	(void)state;
	pair->a.bind_status = AW_WC_MW_BIND_ERR;
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_post(&pair->a, AW_OP_BIND_MW, 0, 10, 0);
	core_tx(&pair->a);
	pair->a.bind_status = AW_WC_SUCCESS;
	core_tx(&pair->a);
	core_pump(pair);
	assert_int_equal(pair->a.binds, 1);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_BIND_MW, AW_WC_MW_BIND_ERR);
	core_pair_destroy(pair);
}

/* What this end answers meanwhile is nothing that its own fault waits for. */
static void ack__own_fault_asks_for_no_answers(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	(void)state;
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_post(&pair->a, AW_OP_READ, 0, 10, 0);
	core_tx(&pair->a);
	core_post(&pair->b, AW_OP_READ, 0, 10, 0);
	core_tx(&pair->b);
	core_deliver(&pair->b, &pair->a);
	core_tx(&pair->a);
	core_wr(&pair->a, AW_OP_WRITE, 0, 10)->sge[0].lkey = 0xbad;
	aw_qp_post(&pair->a.qp);
	core_tx(&pair->a);
	assert_int_equal(pair->a.qp.orq_count, 1);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_LOC_PROT_ERR);
	core_pair_destroy(pair);
}

static void ack__none_comes_any_more(void **state)
{
	struct core_pair *pair = core_pair_acking(CORE_READS);

	(void)state;
	core_post(&pair->a, AW_OP_WRITE, 0, 10, 0);
	core_tx(&pair->a);
	aw_qp_taken(&pair->a.qp);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ack__write_waits_for_the_answer),
		cmocka_unit_test(ack__one_for_all),
		cmocka_unit_test(ack__read_is_one),
		cmocka_unit_test(ack__unsignalled_asks_for_none),
		cmocka_unit_test(ack__unsignalled_fill_the_queue),
		cmocka_unit_test(ack__not_without_depth),
		cmocka_unit_test(ack__refused_write_leaves_those_before),
		cmocka_unit_test(ack__no_receive),
		cmocka_unit_test(ack__receive_is_short),
		cmocka_unit_test(ack__receive_is_bad),
		cmocka_unit_test(ack__either_of_two_writes),
		cmocka_unit_test(ack__length_tells_writes_apart),
		cmocka_unit_test(ack__named_one_may_be_gone),
		cmocka_unit_test(ack__named_one_may_be_gone_before_a_bind),
		cmocka_unit_test(ack__reads_before_are_answered),
		cmocka_unit_test(ack__refused_read_leaves_those_before),
		cmocka_unit_test(ack__answer_fails_before_the_terminate),
		cmocka_unit_test(ack__named_before_it_was_sent),
		cmocka_unit_test(ack__own_fault_leaves_those_before),
		cmocka_unit_test(ack__own_fault_of_a_bind),
		cmocka_unit_test(ack__own_fault_behind_a_local_one),
		cmocka_unit_test(ack__peer_fails_by_itself),
		cmocka_unit_test(ack__peer_fails_by_itself_unnoticed),
		cmocka_unit_test(ack__peer_fails_by_itself_before_it_answers),
		cmocka_unit_test(ack__peer_could_not_take_an_answer),
		cmocka_unit_test(ack__refused_bind_is_not_run_again),
		cmocka_unit_test(ack__own_fault_asks_for_no_answers),
		cmocka_unit_test(ack__none_comes_any_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
