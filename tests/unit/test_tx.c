// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the core transmits: to the octet, in which order, and when a WR is complete.
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

/* Live octets of a siw peer; wire-true because another stack made them. */
static const uint8_t siw_send[] = {
	0x00, 0x22, 0x41, 0x43, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x56, 0x09, 0x3c, 0x0e, 0x93, 0x70,
	0xf5, 0x55, 0x89, 0x00, 0x00, 0x00, 0x00, 0x40, 0x22, 0xe6, 0x22, 0x25,
};

static struct core_end *initiator(uint32_t emss)
{
	struct aw_stream stream = core_stream(true, emss);

	return core_end_create(&stream);
}

static void expect_cqe(struct core_end *end, enum aw_op op, enum aw_wc_status status)
{
	const struct core_cqe *c = core_cqe(end);

	assert_non_null(c);
	assert_int_equal(c->queue, AW_SQ);
	assert_int_equal(c->cqe.wr_id, op);
	assert_int_equal(c->cqe.op, op);
	assert_int_equal(c->cqe.status, status);
}

static void aw_tx_next__send_golden(void **state)
{
	struct core_end *end = initiator(1448);

	(void)state;
	memcpy(end->mem, siw_send + 20, 16);
	core_post(end, AW_OP_SEND, 0, 16, 0);
	core_tx(end);
	assert_int_equal(end->wire_len, sizeof(siw_send));
	assert_memory_equal(end->wire, siw_send, sizeof(siw_send));
	expect_cqe(end, AW_OP_SEND, AW_WC_SUCCESS);
	core_end_destroy(end);
}

/* RFC 5044 figures 5 and 6. */
static void aw_tx_next__markers_golden(void **state)
{
	static const uint8_t first[] = { 0, 0, 0, 0, 0, 0x2a, 0x41, 0x43 };
	static const uint8_t second[] = { 0, 0x2a, 0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0,
					  0, 0,	   0,	 2,    0, 0, 0, 0, 0, 0, 0, 0x14 };
	struct aw_stream stream = core_stream(true, 1448);
	struct core_end *end;

	(void)state;
	stream.markers_tx = true;
	end = core_end_create(&stream);
	core_post(end, AW_OP_SEND, 0, 24, 0);
	core_tx(end);
	assert_int_equal(end->wire_len, 0x34);
	assert_memory_equal(end->wire, first, sizeof(first));
	assert_memory_equal(end->wire + 0x30, "\x52\x23\x99\x83", 4);
	core_end_destroy(end);

	end = core_end_create(&stream);
	core_post(end, AW_OP_SEND, 0, 464, 0);
	core_post(end, AW_OP_SEND, 0, 24, 0);
	core_tx(end);
	assert_int_equal(end->wire_len, 0x220);
	assert_memory_equal(end->wire + 0x1ec, second, sizeof(second));
	assert_memory_equal(end->wire + 0x21c, "\x84\x92\x58\x98", 4);
	core_end_destroy(end);
}

static void aw_tx_next__write_and_read_request_golden(void **state)
{
	static const uint8_t write[] = { 0, 18, 0xc1, 0x40, 0, 0, 0x51, 0, 0, 0,
					 0, 0,	0,    1,    0, 0, 1,	2, 3, 4 };
	static const uint8_t read[] = {
		0, 46, 0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, /* DDP */
		0, 0,  0x70, 0,	   0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, /* sink, size */
		0, 0,  0x51, 0,	   0, 0, 0, 0, 0, 1, 0, 5, /* source */
	};
	struct core_end *end = initiator(1448);

	(void)state;
	memcpy(end->mem, "\1\2\3\4", 4);
	core_post(end, AW_OP_WRITE, 0, 4, 0);
	core_tx(end);
	assert_memory_equal(end->wire, write, sizeof(write));
	end->wire_len = 0;
	core_post(end, AW_OP_READ, 0, 9, 5);
	core_tx(end);
	assert_int_equal(end->wire_len, 52);
	assert_memory_equal(end->wire, read, sizeof(read));
	core_end_destroy(end);
}

static void aw_tx_next__zero_length_write_has_stag_1(void **state)
{
	struct core_end *end = initiator(1448);
	struct aw_swqe *wqe = core_wr(end, AW_OP_WRITE, 0, 0);
	struct ddp_hdr hdr;
	size_t len;

	(void)state;
	wqe->stag = 0;
	aw_qp_post(&end->qp);
	core_tx(end);
	core_peek(end, &hdr, &len);
	assert_int_equal(len, 0);
	assert_true(hdr.last);
	assert_int_equal(hdr.stag, 1);
	expect_cqe(end, AW_OP_WRITE, AW_WC_SUCCESS);
	core_end_destroy(end);
}

static void aw_tx_next__segments_fill_emss(void **state)
{
	struct core_end *end = initiator(1448);
	uint32_t at = 0, max = (uint32_t)fpdu_mulpdu(1448, 0) - DDP_TAGGED_LEN;
	struct ddp_hdr hdr;
	size_t len;

	(void)state;
	core_post(end, AW_OP_WRITE, 0, 5000, 100);
	while (core_tx_one(end)) {
		core_peek(end, &hdr, &len);
		assert_true(end->wire_len <= 1448);
		assert_int_equal(hdr.to, CORE_IOVA + 100 + at);
		assert_int_equal(len, 5000 - at < max ? 5000 - at : max);
		at += len;
		assert_int_equal(hdr.last, at == 5000);
		assert_int_equal(end->logged, at == 5000);
		end->wire_len = 0;
	}
	assert_int_equal(at, 5000);
	core_end_destroy(end);
}

/* Contents, over many sizes of FPDUs and messages, CRC on and off, markers on and off. */
static void aw_tx_next__arrives(void **state)
{
	static const uint32_t emss[] = { 200, 536, 1448, 8948, 65535, 1u << 20 };
	static const uint32_t size[] = { 0, 1, 3, 511, 2048, 2049, 30000, 65536 };

	(void)state;
	for (unsigned int i = 0; i < 4 * 6 * 8; i++) {
		uint32_t len = size[i / 24];
		struct aw_stream a = core_stream(true, emss[i / 4 % 6]);
		struct aw_stream b = core_stream(false, emss[i / 4 % 6]);
		struct core_pair *pair;

		a.crc = b.crc = i & 1;
		a.markers_tx = b.markers_rx = i & 2;
		b.markers_tx = a.markers_rx = i & 2;
		pair = core_pair_create(&a, &b);
		for (uint32_t at = 0; at < 65536; at++)
			pair->a.mem[at] = (uint8_t)(at * 7 + at / 251);
		core_recv(&pair->b, 1, 0, 65536);
		core_post(&pair->a, AW_OP_SEND, 0, len, 0);
		core_pump(pair);
		assert_memory_equal(pair->b.mem, pair->a.mem, len);
		core_post(&pair->a, AW_OP_WRITE, 0, len, 65536);
		core_pump(pair);
		assert_memory_equal(pair->b.mem + 65536, pair->a.mem, len);
		core_post(&pair->a, AW_OP_READ, 65536, len, 65536);
		core_pump(pair);
		assert_memory_equal(pair->a.mem + 65536, pair->a.mem, len);
		expect_cqe(&pair->a, AW_OP_SEND, AW_WC_SUCCESS);
		expect_cqe(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
		expect_cqe(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
		assert_int_equal(core_cqe(&pair->b)->cqe.byte_len, len);
		assert_int_equal(pair->a.qp.state, AW_QP_RTS);
		core_pair_destroy(pair);
	}
}

static void aw_tx_next__crc_off_is_zero(void **state)
{
	struct aw_stream stream = core_stream(true, 1448);
	struct core_end *end;

	(void)state;
	stream.crc = false;
	end = core_end_create(&stream);
	memset(end->mem, 0xff, 16);
	core_post(end, AW_OP_SEND, 0, 16, 0);
	core_tx(end);
	assert_int_equal(get_be32(end->wire + 36), 0);
	core_end_destroy(end);
}

static struct aw_tx_out batch(struct core_end *end, size_t arena, unsigned int iovs)
{
	return (struct aw_tx_out){
		.arena = end->arena,
		.arena_len = arena,
		.iov = end->iov,
		.iov_max = iovs,
	};
}

static void aw_tx_next__lends_only_large_payloads(void **state)
{
	struct core_end *end = initiator(65535);
	struct aw_tx_out out = batch(end, AW_TX_ARENA_MIN, AW_TX_IOV_MIN);

	(void)state;
	core_post(end, AW_OP_WRITE, 0, AW_TX_COPY_MAX, 0);
	core_post(end, AW_OP_WRITE, 0, AW_TX_COPY_MAX, 0);
	core_post(end, AW_OP_WRITE, 64, AW_TX_COPY_MAX + 1, 0);
	core_post(end, AW_OP_WRITE, 0, 1, 0);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	assert_int_equal(out.iov_count, 1);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	assert_int_equal(out.iov_count, 3);
	assert_ptr_equal(out.iov[1].base, end->mem + 64);
	assert_int_equal(out.iov[1].len, AW_TX_COPY_MAX + 1);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	assert_int_equal(out.iov_count, 3);
	assert_int_equal(out.iov[0].len + out.iov[1].len + out.iov[2].len, out.octets);
	core_end_destroy(end);
}

static void aw_tx_next__full_changes_nothing(void **state)
{
	struct core_end *end = initiator(65535);
	struct aw_tx_out small = batch(end, 2 + DDP_TAGGED_LEN + 100 + 3, 1);
	struct aw_tx_out few = batch(end, AW_TX_ARENA_MIN, 2);
	struct aw_tx_out room = batch(end, 2 + DDP_TAGGED_LEN + 100 + 4, 1);

	(void)state;
	core_post(end, AW_OP_WRITE, 0, 100, 0);
	assert_int_equal(aw_tx_next(&end->qp, &small), AW_TX_FULL);
	assert_int_equal(small.octets + small.arena_used + small.iov_count, 0);
	assert_int_equal(end->qp.tx_pos, 0);
	assert_int_equal(aw_tx_next(&end->qp, &room), AW_TX_FPDU);
	assert_int_equal(room.octets, room.arena_len);
	core_post(end, AW_OP_WRITE, 0, 10000, 0);
	assert_int_equal(aw_tx_next(&end->qp, &few), AW_TX_FULL);
	assert_int_equal(few.iov_count, 0);
	core_tx(end);
	core_post(end, AW_OP_READ, 0, 10, 0);
	assert_int_equal(aw_tx_next(&end->qp, &(struct aw_tx_out){ 0 }), AW_TX_FULL);
	assert_int_equal(end->qp.orq_count, 0);
	core_end_destroy(end);
}

/* The least batch that tx.h names takes any one FPDU. */
static void aw_tx_next__least_batch_suffices(void **state)
{
	(void)state;
	for (int markers = 0; markers < 2; markers++) {
		struct aw_stream stream = core_stream(true, 1u << 20);
		struct core_end *end;
		struct aw_swqe *wqe;

		stream.markers_tx = markers;
		end = core_end_create(&stream);
		wqe = core_wr(end, AW_OP_SEND, 0, 30 * 4000);
		wqe->sge_count = AW_SGE_MAX;
		for (unsigned int i = 0; i < AW_SGE_MAX; i++)
			wqe->sge[i] = (struct aw_sge){ CORE_IOVA + i, 4000, CORE_STAG };
		aw_qp_post(&end->qp);
		do {
			struct aw_tx_out out = batch(end, AW_TX_ARENA_MIN, AW_TX_IOV_MIN);

			assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
			aw_tx_sent(&end->qp, out.octets);
		} while (end->logged == 0);
		expect_cqe(end, AW_OP_SEND, AW_WC_SUCCESS);
		core_end_destroy(end);
	}
}

static void aw_tx_next__gathers_sges(void **state)
{
	struct core_pair *pair = core_pair_ready(300);
	struct aw_swqe *wqe = core_wr(&pair->a, AW_OP_SEND, 0, 700);

	(void)state;
	for (uint32_t at = 0; at < 2000; at++)
		pair->a.mem[at] = (uint8_t)(at * 5 + at / 256);
	wqe->sge_count = 4;
	wqe->sge[0] = (struct aw_sge){ CORE_IOVA + 1000, 1, CORE_STAG };
	wqe->sge[1] = (struct aw_sge){ 0, 0, 0xdead }; /* nothing, so no MR is looked for */
	wqe->sge[2] = (struct aw_sge){ CORE_IOVA + 300, 299, CORE_STAG };
	wqe->sge[3] = (struct aw_sge){ CORE_IOVA + 1200, 400, CORE_STAG };
	aw_qp_post(&pair->a.qp);
	core_recv(&pair->b, 1, 5000, 700);
	core_pump(pair);
	assert_memory_equal(pair->b.mem + 5000, pair->a.mem + 1000, 1);
	assert_memory_equal(pair->b.mem + 5001, pair->a.mem + 300, 299);
	assert_memory_equal(pair->b.mem + 5300, pair->a.mem + 1200, 400);
	core_pair_destroy(pair);
}

static void aw_tx_next__inline_is_taken_at_post(void **state)
{
	struct core_pair *pair = core_pair_ready(200);
	struct aw_swqe *wqe = core_wr(&pair->a, AW_OP_WRITE, 0, AW_INLINE_MAX);

	(void)state;
	wqe->flags |= AW_WR_INLINE;
	wqe->sge_count = 0;
	for (unsigned int i = 0; i < AW_INLINE_MAX; i++)
		wqe->data[i] = (uint8_t)(i * 3);
	aw_qp_post(&pair->a.qp);
	core_pump(pair);
	assert_int_equal(pair->b.mem[1], 3);
	assert_int_equal(pair->b.mem[AW_INLINE_MAX - 1], (uint8_t)((AW_INLINE_MAX - 1) * 3));
	expect_cqe(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

static void aw_tx_sent__completes_at_last_octet(void **state)
{
	struct core_end *end = initiator(1448);
	struct aw_tx_out out = batch(end, AW_TX_ARENA_MIN, AW_TX_IOV_MIN);

	(void)state;
	core_post(end, AW_OP_SEND, 0, 10, 0);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	aw_tx_sent(&end->qp, out.octets - 1);
	assert_int_equal(end->logged, 0);
	aw_tx_sent(&end->qp, 1);
	expect_cqe(end, AW_OP_SEND, AW_WC_SUCCESS);
	assert_int_equal(aw_sq_count(&end->qp.sq), 0);
	core_end_destroy(end);
}

static void aw_tx_sent__unsignalled_is_silent(void **state)
{
	struct core_end *end = initiator(1448);

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
	expect_cqe(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
	assert_int_equal(pair->a.log[0].cqe.byte_len, 100);
	expect_cqe(&pair->a, AW_OP_SEND, AW_WC_SUCCESS);
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
	expect_cqe(end, AW_OP_READ, AW_WC_LOC_QP_OP_ERR);
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
	expect_cqe(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
	expect_cqe(&pair->a, AW_OP_LOCAL_INV, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

static void aw_tx_next__local_inv_fails(void **state)
{
	struct core_end *end = initiator(1448);

	(void)state;
	core_wr(end, AW_OP_LOCAL_INV, 0, 0)->stag = 0xbad;
	aw_qp_post(&end->qp);
	core_tx(end);
	expect_cqe(end, AW_OP_LOCAL_INV, AW_WC_LOC_PROT_ERR);
	assert_int_equal(end->qp.state, AW_QP_TERMINATE);
	core_end_destroy(end);
}

/* The bad WR's own status; older ones as they went; younger ones flushed; the peer is told. */
static void aw_tx_next__bad_lkey(void **state)
{
	static const enum aw_op ops[] = { AW_OP_SEND, AW_OP_WRITE, AW_OP_READ };

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		struct core_end *end = initiator(1448);
		struct aw_swqe *wqe;
		struct ddp_hdr hdr;
		size_t len;

		core_post(end, AW_OP_SEND, 0, 1, 0);
		core_tx(end);
		end->wire_len = 0;
		wqe = core_wr(end, ops[i % 3], 0, 5000);
		wqe->sge_count = 2;
		wqe->sge[0].len = 4999;
		wqe->sge[1] = (struct aw_sge){ CORE_IOVA, 1, i < 3 ? 0xbad : CORE_STAG };
		if (i >= 3)
			wqe->sge[1].addr = CORE_IOVA + CORE_MEM;
		aw_qp_post(&end->qp);
		core_post(end, AW_OP_WRITE, 0, 1, 0);
		core_recv(end, 77, 0, 10);
		core_tx(end);
		expect_cqe(end, AW_OP_SEND, AW_WC_SUCCESS);
		expect_cqe(end, ops[i % 3], AW_WC_LOC_PROT_ERR);
		expect_cqe(end, AW_OP_WRITE, AW_WC_WR_FLUSH_ERR);
		assert_int_equal(core_cqe(end)->cqe.wr_id, 77);
		assert_memory_equal(core_peek(end, &hdr, &len), "\0\0\0\0", 4);
		assert_int_equal(hdr.qn, DDP_QN_TERMINATE);
		assert_int_equal(end->wire_len, fpdu_size(DDP_UNTAGGED_LEN + 4));
		core_end_destroy(end);
	}
}

static void aw_tx_next__read_sink_needs_local_write(void **state)
{
	struct core_end *end = initiator(1448);
	struct aw_swqe *wqe;

	(void)state;
	core_mr_add(end, 0x99, AW_ACCESS_REMOTE_READ, 0, 100);
	wqe = core_wr(end, AW_OP_READ, 0, 10);
	wqe->sge[0].lkey = 0x99;
	aw_qp_post(&end->qp);
	core_tx(end);
	expect_cqe(end, AW_OP_READ, AW_WC_LOC_PROT_ERR);
	core_end_destroy(end);
}

/* The MR goes while its WR is half out: what is lent is waited for, then all is flushed. */
static void aw_tx_next__mr_gone_midway(void **state)
{
	struct core_end *end = initiator(8948);
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
	expect_cqe(end, AW_OP_WRITE, AW_WC_LOC_PROT_ERR);
	expect_cqe(end, AW_OP_SEND, AW_WC_WR_FLUSH_ERR);
	expect_cqe(end, AW_OP_READ, AW_WC_WR_FLUSH_ERR);
	assert_false(aw_qp_tx_finished(&end->qp));
	aw_tx_sent(&end->qp, (size_t)(end->qp.tx_pos - end->qp.sent_pos));
	assert_true(aw_qp_tx_finished(&end->qp));
	core_end_destroy(end);
}

static void aw_tx_next__unsupported_ops_fail(void **state)
{
	static const enum aw_op ops[] = { AW_OP_BIND_MW, AW_OP_WRITE_IMM, AW_OP_SEND_IMM,
					  AW_OP_CMP_SWAP, AW_OP_FETCH_ADD };

	(void)state;
	for (unsigned int i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct core_end *end = initiator(1448);

		core_post(end, ops[i], 0, 8, 0);
		core_tx(end);
		expect_cqe(end, ops[i], AW_WC_LOC_QP_OP_ERR);
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
	expect_cqe(&pair->a, AW_OP_READ, AW_WC_REM_ACCESS_ERR);
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
			expect_cqe(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
		assert_int_not_equal(pair->a.qp.orq[0].sink_stag, 0);
	}
	core_pair_destroy(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_tx_next__send_golden),
		cmocka_unit_test(aw_tx_next__markers_golden),
		cmocka_unit_test(aw_tx_next__write_and_read_request_golden),
		cmocka_unit_test(aw_tx_next__zero_length_write_has_stag_1),
		cmocka_unit_test(aw_tx_next__segments_fill_emss),
		cmocka_unit_test(aw_tx_next__arrives),
		cmocka_unit_test(aw_tx_next__crc_off_is_zero),
		cmocka_unit_test(aw_tx_next__lends_only_large_payloads),
		cmocka_unit_test(aw_tx_next__full_changes_nothing),
		cmocka_unit_test(aw_tx_next__least_batch_suffices),
		cmocka_unit_test(aw_tx_next__gathers_sges),
		cmocka_unit_test(aw_tx_next__inline_is_taken_at_post),
		cmocka_unit_test(aw_tx_sent__completes_at_last_octet),
		cmocka_unit_test(aw_tx_sent__unsignalled_is_silent),
		cmocka_unit_test(aw_tx_sent__send_behind_read_waits),
		cmocka_unit_test(aw_tx_next__ord_bounds_reads),
		cmocka_unit_test(aw_tx_next__read_without_ord_fails),
		cmocka_unit_test(aw_tx_next__fence_waits_for_reads),
		cmocka_unit_test(aw_tx_next__local_inv_at_its_turn),
		cmocka_unit_test(aw_tx_next__local_inv_fails),
		cmocka_unit_test(aw_tx_next__bad_lkey),
		cmocka_unit_test(aw_tx_next__read_sink_needs_local_write),
		cmocka_unit_test(aw_tx_next__mr_gone_midway),
		cmocka_unit_test(aw_tx_next__unsupported_ops_fail),
		cmocka_unit_test(aw_tx_next__responder_waits),
		cmocka_unit_test(aw_tx_next__rtr_goes_first),
		cmocka_unit_test(aw_tx_next__responses_and_sq_take_turns),
		cmocka_unit_test(aw_tx_next__read_source_gone_midway),
		cmocka_unit_test(aw_tx_next__many_reads_wrap_the_rings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
