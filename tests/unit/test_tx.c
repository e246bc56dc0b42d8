// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the core transmits in which order, when a WR is complete, and what stops it.
#include "../lib/core_pair.h"

#include "wire/fpdu.h"
#include "wire/octets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static struct aw_tx_out batch(struct core_end *end, size_t arena, unsigned int iovs)
{
	return (struct aw_tx_out){
		.arena = end->arena,
		.arena_len = arena,
		.iov = end->iov,
		.iov_max = iovs,
	};
}

static void aw_tx_next__kinds_of_send(void **state)
{
	static const struct {
		enum aw_op op;
		uint8_t flags, ctrl;
		uint32_t rsvd;
	} cases[] = { { AW_OP_SEND, 0, 0x43, 0 },
		      { AW_OP_SEND, AW_WR_SOLICITED, 0x45, 0 },
		      { AW_OP_SEND_INV, 0, 0x44, 0xabcd },
		      { AW_OP_SEND_INV, AW_WR_SOLICITED, 0x46, 0xabcd } };
	struct core_end *end = core_initiator(1448);
	struct ddp_hdr hdr;
	size_t len;

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct aw_swqe *wqe = core_wr(end, cases[i].op, 0, 7);

		wqe->flags = cases[i].flags;
		wqe->inv_or_imm = 0xabcd;
		aw_qp_post(&end->qp);
		core_post(end, AW_OP_WRITE, 0, 1, 0); /* takes no MSN */
		core_tx(end);
		core_peek(end, &hdr, &len);
		assert_int_equal(hdr.ulp_ctrl, cases[i].ctrl);
		assert_int_equal(hdr.ulp_rsvd, cases[i].rsvd);
		assert_int_equal(hdr.msn, i + 1);
		end->wire_len = 0;
	}
	core_end_destroy(end);
}

static void aw_tx_sent__completes_at_last_octet(void **state)
{
	struct core_end *end = core_initiator(1448);
	struct aw_tx_out out = batch(end, AW_TX_ARENA_MIN, AW_TX_IOV_MIN);

	(void)state;
	core_post(end, AW_OP_SEND, 0, 10, 0);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	aw_tx_sent(&end->qp, out.octets - 1);
	assert_int_equal(end->logged, 0);
	aw_tx_sent(&end->qp, 1);
	core_expect_sq(end, AW_OP_SEND, AW_WC_SUCCESS);
	assert_int_equal(aw_sq_count(&end->qp.sq), 0);
	core_end_destroy(end);
}

static void aw_tx_sent__unsignalled_is_silent(void **state)
{
	struct core_end *end = core_initiator(1448);

	(void)state;
	core_wr(end, AW_OP_SEND, 0, 1)->flags = 0;
	aw_qp_post(&end->qp);
	core_tx(end);
	assert_int_equal(end->logged, 0);
	assert_int_equal(aw_sq_count(&end->qp.sq), 0);
	end->qp.sig_all = true;
	core_wr(end, AW_OP_SEND, 0, 1)->flags = 0;
	aw_qp_post(&end->qp);
	core_tx(end);
	assert_int_equal(end->logged, 1);
	core_end_destroy(end);
}

/* RFC 5040 5.5 rule 15: in the order posted, though the Send's octets went out before. */
static void aw_tx_sent__send_behind_read_waits(void **state)
{
	struct core_pair *pair = core_pair_ready(1448);

	(void)state;
	core_recv(&pair->b, 1, 0, 100);
	core_post(&pair->a, AW_OP_READ, 0, 100, 0);
	core_post(&pair->a, AW_OP_SEND, 0, 100, 0);
	core_tx(&pair->a);
	assert_int_equal(pair->a.logged, 0);
	core_pump(pair);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
	assert_int_equal(pair->a.log[0].cqe.byte_len, 100);
	core_expect_sq(&pair->a, AW_OP_SEND, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

static void aw_tx_next__ord_bounds_reads(void **state)
{
	struct aw_stream a = core_stream(true, 1448), b = core_stream(false, 1448);
	struct core_pair *pair;

	(void)state;
	a.ord = 2;
	pair = core_pair_create(&a, &b);
	for (unsigned int i = 0; i < 3; i++)
		core_post(&pair->a, AW_OP_READ, i, 1, 0);
	core_post(&pair->a, AW_OP_WRITE, 0, 1, 0);
	core_tx(&pair->a);
	assert_int_equal(pair->a.wire_len, 2 * 52);
	core_deliver(&pair->a, &pair->b);
	assert_true(core_tx_one(&pair->b));
	core_deliver(&pair->b, &pair->a);
	core_tx(&pair->a);
	assert_int_equal(pair->a.wire_len, 52 + 24);
	core_pump(pair);
	assert_int_equal(pair->a.logged, 4);
	core_pair_destroy(pair);
}

static void aw_tx_next__read_without_ord_fails(void **state)
{
	struct aw_stream stream = core_stream(true, 1448);
	struct core_end *end;

	(void)state;
	stream.ord = 0;
	end = core_end_create(&stream);
	core_post(end, AW_OP_READ, 0, 1, 0);
	core_tx(end);
	core_expect_sq(end, AW_OP_READ, AW_WC_LOC_QP_OP_ERR);
	assert_int_equal(end->qp.state, AW_QP_TERMINATE);
	core_end_destroy(end);
}

static void aw_tx_next__fence_waits_for_reads(void **state)
{
	struct core_pair *pair = core_pair_ready(1448);

	(void)state;
	core_post(&pair->a, AW_OP_READ, 0, 1, 0);
	core_post(&pair->a, AW_OP_WRITE, 0, 1, 0);
	core_wr(&pair->a, AW_OP_WRITE, 0, 1)->flags |= AW_WR_FENCE;
	aw_qp_post(&pair->a.qp);
	core_tx(&pair->a);
	assert_int_equal(pair->a.wire_len, 52 + 24);
	core_deliver(&pair->a, &pair->b);
	core_tx(&pair->b);
	assert_false(core_tx_one(&pair->a));
	core_deliver(&pair->b, &pair->a);
	assert_true(core_tx_one(&pair->a));
	core_pair_destroy(pair);
}

static void aw_tx_next__local_inv_at_its_turn(void **state)
{
	struct core_pair *pair = core_pair_ready(1448);
	struct aw_swqe *wqe;

	(void)state;
	core_mr_add(&pair->a, 0x99, ~0u, 0, 100);
	core_post(&pair->a, AW_OP_READ, 0, 1, 0);
	wqe = core_wr(&pair->a, AW_OP_LOCAL_INV, 0, 0);
	wqe->stag = 0x99;
	wqe->flags |= AW_WR_FENCE;
	aw_qp_post(&pair->a.qp);
	core_tx(&pair->a);
	assert_int_equal(pair->a.invalidated, 0);
	core_pump(pair);
	assert_int_equal(pair->a.invalidated, 0x99);
	assert_false(pair->a.invalidated_by_peer);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_LOCAL_INV, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

/* The peer may use what the Send behind it tells of, and no Read before it may still be under way. */
static void aw_tx_next__bind_before_what_follows(void **state)
{
	struct core_pair *pair = core_pair_ready(1448);
	struct aw_swqe *wqe;

	(void)state;
	core_recv(&pair->b, 1, 0, 100);
	core_post(&pair->a, AW_OP_READ, 0, 1, 0);
	wqe = core_wr(&pair->a, AW_OP_BIND_MW, 0, 0);
	wqe->stag = 0x9901;
	wqe->flags |= AW_WR_FENCE;
	aw_qp_post(&pair->a.qp);
	core_post(&pair->a, AW_OP_SEND, 0, 1, 0);
	core_tx(&pair->a);
	assert_int_equal(pair->a.binds, 0);
	core_deliver(&pair->a, &pair->b);
	core_tx(&pair->b);
	core_deliver(&pair->b, &pair->a);
	assert_true(core_tx_one(&pair->a));
	assert_int_equal(pair->a.binds, 1);
	assert_int_equal(pair->a.bound.stag, 0x9901);
	assert_false(core_tx_one(&pair->a));
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_BIND_MW, AW_WC_SUCCESS);
	core_expect_sq(&pair->a, AW_OP_SEND, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

static void aw_tx_next__bind_unsignalled(void **state)
{
	struct core_end *end = core_initiator(1448);

	(void)state;
	core_wr(end, AW_OP_BIND_MW, 0, 0)->flags &= (uint8_t)~AW_WR_SIGNALED;
	aw_qp_post(&end->qp);
	core_tx(end);
	assert_int_equal(end->binds, 1);
	assert_null(core_cqe(end));
	assert_int_equal(aw_sq_count(&end->qp.sq), 0);
	core_end_destroy(end);
}

/* The rkey may go to the peer in another way, which the peer waits for before it says a word. */
static void aw_tx_next__bind_before_the_peer_is_heard(void **state)
{
	struct core_end *end = core_responder();

	(void)state;
	core_wr(end, AW_OP_BIND_MW, 0, 0);
	aw_qp_post(&end->qp);
	core_post(end, AW_OP_SEND, 0, 1, 0);
	assert_false(core_tx_one(end));
	assert_int_equal(end->binds, 1);
	core_expect_sq(end, AW_OP_BIND_MW, AW_WC_SUCCESS);
	assert_null(core_cqe(end));
	core_end_destroy(end);
}

static void aw_tx_next__bind_fails(void **state)
{
	struct core_end *end = core_initiator(1448);

	(void)state;
	end->bind_status = AW_WC_MW_BIND_ERR;
	core_wr(end, AW_OP_BIND_MW, 0, 0);
	aw_qp_post(&end->qp);
	core_post(end, AW_OP_SEND, 0, 1, 0);
	core_tx(end);
	core_expect_sq(end, AW_OP_BIND_MW, AW_WC_MW_BIND_ERR);
	core_expect_sq(end, AW_OP_SEND, AW_WC_WR_FLUSH_ERR);
	assert_int_equal(end->qp.error, AW_E_LOCAL_CATASTROPHIC);
	core_end_destroy(end);
}

static void aw_tx_next__local_inv_fails(void **state)
{
	struct core_end *end = core_initiator(1448);

	(void)state;
	core_wr(end, AW_OP_LOCAL_INV, 0, 0)->stag = 0xbad;
	aw_qp_post(&end->qp);
	core_tx(end);
	core_expect_sq(end, AW_OP_LOCAL_INV, AW_WC_MW_BIND_ERR);
	assert_int_equal(end->qp.state, AW_QP_TERMINATE);
	core_end_destroy(end);
}

/* The bad WR's own status; older ones as they went; younger ones flushed; the peer is told. */
static void aw_tx_next__bad_lkey(void **state)
{
	static const enum aw_op ops[] = { AW_OP_SEND, AW_OP_WRITE, AW_OP_READ };

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		struct core_end *end = core_initiator(1448);
		struct aw_swqe *wqe;
		struct aw_sge *sge;
		struct ddp_hdr hdr;
		size_t len;

		core_post(end, AW_OP_SEND, 0, 1, 0);
		core_tx(end);
		end->wire_len = 0;
		wqe = core_wr(end, ops[i % 3], 0, 5000);
		sge = wqe->sge; /* as many as the slot has room for */
		wqe->sge_count = 2;
		sge[0].len = 4999;
		sge[1] = (struct aw_sge){ CORE_IOVA, 1, i < 3 ? 0xbad : CORE_STAG };
		if (i >= 3)
			sge[1].addr = CORE_IOVA + CORE_MEM;
		aw_qp_post(&end->qp);
		core_post(end, AW_OP_WRITE, 0, 1, 0);
		core_recv(end, 77, 0, 10);
		core_tx(end);
		core_expect_sq(end, AW_OP_SEND, AW_WC_SUCCESS);
		core_expect_sq(end, ops[i % 3], AW_WC_LOC_PROT_ERR);
		core_expect_sq(end, AW_OP_WRITE, AW_WC_WR_FLUSH_ERR);
		assert_int_equal(core_cqe(end)->cqe.wr_id, 77);
		assert_memory_equal(core_peek(end, &hdr, &len), "\0\0\0\0", 4);
		assert_int_equal(hdr.qn, DDP_QN_TERMINATE);
		assert_int_equal(end->wire_len, fpdu_size(DDP_UNTAGGED_LEN + 4));
		core_end_destroy(end);
	}
}

static void aw_tx_next__read_sink_needs_local_write(void **state)
{
	struct core_end *end = core_initiator(1448);
	struct aw_swqe *wqe;

	(void)state;
	core_mr_add(end, 0x99, AW_ACCESS_REMOTE_READ, 0, 100);
	wqe = core_wr(end, AW_OP_READ, 0, 10);
	wqe->sge[0].lkey = 0x99;
	aw_qp_post(&end->qp);
	core_tx(end);
	core_expect_sq(end, AW_OP_READ, AW_WC_LOC_PROT_ERR);
	core_end_destroy(end);
}

/* The MR goes while its WR is half out: what is lent is waited for, then all is flushed. */
static void aw_tx_next__mr_gone_midway(void **state)
{
	struct core_end *end = core_initiator(8948);
	struct aw_tx_out out = batch(end, sizeof(end->arena), 60);
	struct aw_mr *mr = core_mr_add(end, 0x99, 0, 0, 60000);

	(void)state;
	core_wr(end, AW_OP_WRITE, 0, 60000)->sge[0].lkey = 0x99;
	aw_qp_post(&end->qp);
	core_post(end, AW_OP_SEND, 0, 1, 0);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	mr->pd = NULL;
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	assert_int_equal(end->qp.state, AW_QP_TERMINATE);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_NONE);
	core_post(end, AW_OP_READ, 0, 1, 0);
	assert_int_equal(end->logged, 0);
	aw_tx_sent(&end->qp, (size_t)end->qp.flush_pos - 1);
	assert_int_equal(end->logged, 0);
	aw_tx_sent(&end->qp, 1);
	core_expect_sq(end, AW_OP_WRITE, AW_WC_LOC_PROT_ERR);
	core_expect_sq(end, AW_OP_SEND, AW_WC_WR_FLUSH_ERR);
	core_expect_sq(end, AW_OP_READ, AW_WC_WR_FLUSH_ERR);
	assert_false(aw_qp_tx_finished(&end->qp));
	aw_tx_sent(&end->qp, (size_t)(end->qp.tx_pos - end->qp.sent_pos));
	assert_true(aw_qp_tx_finished(&end->qp));
	core_end_destroy(end);
}

/* The connection is lost before the failed WR's first octets were sent: still its own status. */
static void aw_tx_next__mr_gone_midway_and_lost(void **state)
{
	struct core_end *end = core_initiator(8948);
	struct aw_tx_out out = batch(end, sizeof(end->arena), 60);

	(void)state;
	core_post(end, AW_OP_WRITE, 0, 60000, 0);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	end->mr[0].pd = NULL;
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	aw_qp_abort(&end->qp, AW_E_MPA_CLOSED);
	core_expect_sq(end, AW_OP_WRITE, AW_WC_LOC_PROT_ERR);
	core_end_destroy(end);
}

static void aw_tx_next__extensions_not_agreed_on_fail(void **state)
{
	static const enum aw_op ops[] = { AW_OP_WRITE_IMM, AW_OP_SEND_IMM,     AW_OP_CMP_SWAP,
					  AW_OP_FETCH_ADD, AW_OP_ATOMIC_WRITE, AW_OP_FLUSH };

	(void)state;
	for (unsigned int i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct core_end *end = core_initiator(1448);

		core_post(end, ops[i], 0, 8, 0);
		core_tx(end);
		core_expect_sq(end, ops[i], AW_WC_LOC_QP_OP_ERR);
		core_end_destroy(end);
	}
}

/* RFC 5044 7.1.2 rule 4. */
static void aw_tx_next__responder_waits(void **state)
{
	struct aw_stream stream = core_stream(false, 1448);
	struct core_end *end;
	struct ddp_hdr hdr = { .tagged = true, .last = true, .ulp_ctrl = rdmap_ctrl(RDMAP_WRITE) };

	(void)state;
	stream.markers_tx = true;
	end = core_end_create(&stream);
	core_post(end, AW_OP_WRITE, 0, 1, 0);
	assert_false(core_tx_one(end));
	core_inject(end, &hdr, NULL, 0);
	assert_true(core_tx_one(end));
	core_end_destroy(end);
}

static struct core_pair *p2p_pair(enum mpa_rtr rtr)
{
	struct aw_stream a = core_stream(true, 1448), b = core_stream(false, 1448);

	a.p2p = b.p2p = true;
	a.rtr = rtr;
	b.rtr = MPA_RTR_SEND | MPA_RTR_WRITE | MPA_RTR_READ;
	return core_pair_create(&a, &b);
}

/* core_tx_one compares the answer with what aw_tx_next then does, in every test of the core. */
static void aw_tx_is_idle__until_there_is_something_to_send(void **state)
{
	struct core_pair *pair = core_pair_ready(1448);

	(void)state;
	assert_true(aw_tx_is_idle(&pair->a.qp) && aw_tx_is_idle(&pair->b.qp));
	core_post(&pair->a, AW_OP_READ, 0, 100, 0);
	assert_false(aw_tx_is_idle(&pair->a.qp));
	core_tx(&pair->a);
	assert_true(aw_tx_is_idle(&pair->a.qp)); /* the Read is outstanding */
	core_deliver(&pair->a, &pair->b);
	assert_false(aw_tx_is_idle(&pair->b.qp)); /* the Read Response is due */
	core_pump(pair);
	assert_true(aw_tx_is_idle(&pair->a.qp) && aw_tx_is_idle(&pair->b.qp));
	core_pair_destroy(pair);
}

static void aw_tx_next__rtr_goes_first(void **state)
{
	static const enum mpa_rtr rtr[] = { MPA_RTR_WRITE, MPA_RTR_READ, MPA_RTR_SEND };
	static const uint8_t ctrl[] = { 0x40, 0x41, 0x43 };

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct core_pair *pair = p2p_pair(rtr[i]);
		struct ddp_hdr hdr;
		size_t len;

		core_recv(&pair->b, 5, 0, 100);
		core_recv(&pair->a, 6, 0, 100);
		core_post(&pair->a, AW_OP_SEND, 0, 10, 0);
		core_post(&pair->b, AW_OP_SEND, 0, 20, 0);
		core_tx_one(&pair->a);
		core_peek(&pair->a, &hdr, &len);
		assert_int_equal(hdr.ulp_ctrl, ctrl[i]);
		assert_int_equal(len, i == 1 ? RDMAP_READ_REQ_LEN : 0);
		core_deliver(&pair->a, &pair->b);
		core_tx_one(&pair->b);
		core_peek(&pair->b, &hdr, &len);
		assert_int_equal(len, 20); /* the responder has no RTR */
		core_pump(pair);
		assert_int_equal(pair->a.logged, 2);
		assert_int_equal(pair->b.logged, 2);
		assert_int_equal(
			core_cqe(&pair->b)->cqe.byte_len + core_cqe(&pair->b)->cqe.byte_len, 10);
		assert_int_equal(pair->a.qp.orq_count, 0);
		assert_int_equal(pair->a.qp.state, AW_QP_RTS);
		core_pair_destroy(pair);
	}
}

static void aw_tx_next__responses_and_sq_take_turns(void **state)
{
	struct core_pair *pair = core_pair_ready(300);
	unsigned int responses = 0, writes = 0;
	struct ddp_hdr hdr;
	size_t len;

	(void)state;
	core_post(&pair->a, AW_OP_READ, 0, 1000, 0);
	core_tx(&pair->a);
	core_deliver(&pair->a, &pair->b);
	core_post(&pair->b, AW_OP_WRITE, 0, 1000, 0);
	for (unsigned int i = 0; i < 4; i++) {
		assert_true(core_tx_one(&pair->b));
		core_peek(&pair->b, &hdr, &len);
		responses += hdr.ulp_ctrl == rdmap_ctrl(RDMAP_READ_RESP);
		writes += hdr.ulp_ctrl == rdmap_ctrl(RDMAP_WRITE);
		pair->b.wire_len = 0;
	}
	assert_int_equal(responses, 2);
	assert_int_equal(writes, 2);
	core_pair_destroy(pair);
}

/* RFC 5040 4.8: the Read header moves on by what was sent. */
static void aw_tx_next__read_source_gone_midway(void **state)
{
	struct core_pair *pair = core_pair_ready(1016);
	struct aw_mr *mr = core_mr_add(&pair->b, 0x99, AW_ACCESS_REMOTE_READ, 0, 5000);
	struct term_msg msg;
	struct rdmap_read_req req;
	struct ddp_hdr hdr;
	const uint8_t *payload;
	size_t len, first;

	(void)state;
	core_post(&pair->a, AW_OP_READ, 0, 10, 0);
	core_pump(pair);
	core_wr(&pair->a, AW_OP_READ, 0, 5000)->stag = 0x99;
	aw_qp_post(&pair->a.qp);
	core_tx(&pair->a);
	core_deliver(&pair->a, &pair->b);
	assert_true(core_tx_one(&pair->b));
	core_peek(&pair->b, &hdr, &first);
	core_deliver(&pair->b, &pair->a);
	mr->pd = NULL;
	assert_true(core_tx_one(&pair->b));
	payload = core_peek(&pair->b, &hdr, &len);
	assert_int_equal(hdr.ulp_ctrl, rdmap_ctrl(RDMAP_TERMINATE));
	assert_true(term_get(payload, len, &msg));
	assert_int_equal(msg.error, AW_E_RDMAP_STAG);
	assert_true(msg.has_rdmap && msg.has_ddp && msg.has_seg_len);
	assert_int_equal(msg.seg_len, 46);
	assert_int_equal(get_be32(msg.ddp + 10), 2); /* its MSN */
	req = rdmap_read_req_get(msg.rdmap);
	assert_int_equal(req.size, 5000 - first);
	assert_int_equal(req.sink_to, first);
	assert_int_equal(req.src_to, CORE_IOVA + first);
	core_deliver(&pair->b, &pair->a);
	core_cqe(&pair->a);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_REM_ACCESS_ERR);
	core_pair_destroy(pair);
}

static void aw_tx_next__read_right_gone_midway(void **state)
{
	struct core_pair *pair = core_pair_ready(1448);

	(void)state;
	core_post(&pair->a, AW_OP_READ, 0, 10, 0);
	core_tx(&pair->a);
	core_deliver(&pair->a, &pair->b);
	pair->b.mr[0].access = AW_ACCESS_LOCAL_WRITE;
	core_pump(pair);
	assert_int_equal(pair->b.qp.error, AW_E_RDMAP_ACCESS);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_REM_ACCESS_ERR);
	core_pair_destroy(pair);
}

static void aw_tx_next__many_reads_wrap_the_rings(void **state)
{
	struct core_pair *pair = core_pair_ready(1448);

	(void)state;
	pair->a.qp.next_sink_stag = UINT32_MAX - 2; /* 0 is left out */
	for (unsigned int i = 0; i < 50; i++) {
		for (unsigned int j = 0; j < 3; j++)
			core_post(&pair->a, AW_OP_READ, j, 3, 0);
		core_pump(pair);
		for (unsigned int j = 0; j < 3; j++)
			core_expect_sq(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
		assert_int_not_equal(pair->a.qp.orq[0].sink_stag, 0);
	}
	core_pair_destroy(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_tx_next__kinds_of_send),
		cmocka_unit_test(aw_tx_sent__completes_at_last_octet),
		cmocka_unit_test(aw_tx_sent__unsignalled_is_silent),
		cmocka_unit_test(aw_tx_sent__send_behind_read_waits),
		cmocka_unit_test(aw_tx_next__ord_bounds_reads),
		cmocka_unit_test(aw_tx_next__read_without_ord_fails),
		cmocka_unit_test(aw_tx_next__fence_waits_for_reads),
		cmocka_unit_test(aw_tx_next__local_inv_at_its_turn),
		cmocka_unit_test(aw_tx_next__local_inv_fails),
		cmocka_unit_test(aw_tx_next__bind_before_what_follows),
		cmocka_unit_test(aw_tx_next__bind_unsignalled),
		cmocka_unit_test(aw_tx_next__bind_before_the_peer_is_heard),
		cmocka_unit_test(aw_tx_next__bind_fails),
		cmocka_unit_test(aw_tx_next__bad_lkey),
		cmocka_unit_test(aw_tx_next__read_sink_needs_local_write),
		cmocka_unit_test(aw_tx_next__mr_gone_midway),
		cmocka_unit_test(aw_tx_next__mr_gone_midway_and_lost),
		cmocka_unit_test(aw_tx_next__extensions_not_agreed_on_fail),
		cmocka_unit_test(aw_tx_next__responder_waits),
		cmocka_unit_test(aw_tx_is_idle__until_there_is_something_to_send),
		cmocka_unit_test(aw_tx_next__rtr_goes_first),
		cmocka_unit_test(aw_tx_next__responses_and_sq_take_turns),
		cmocka_unit_test(aw_tx_next__read_source_gone_midway),
		cmocka_unit_test(aw_tx_next__read_right_gone_midway),
		cmocka_unit_test(aw_tx_next__many_reads_wrap_the_rings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
