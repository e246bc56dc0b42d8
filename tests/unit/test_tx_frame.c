// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FPDUs as they leave: to the octet, in as many sizes and batches as there are ways to cut them.
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

static void aw_tx_next__send_golden(void **state)
{
	struct core_end *end = core_initiator(1448);

	(void)state;
	memcpy(end->mem, core_siw_send + 20, 16);
	core_post(end, AW_OP_SEND, 0, 16, 0);
	core_tx(end);
	assert_int_equal(end->wire_len, sizeof(core_siw_send));
	assert_memory_equal(end->wire, core_siw_send, sizeof(core_siw_send));
	core_expect_sq(end, AW_OP_SEND, AW_WC_SUCCESS);
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
	struct core_end *end = core_initiator(1448);

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
	struct core_end *end = core_initiator(1448);
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
	core_expect_sq(end, AW_OP_WRITE, AW_WC_SUCCESS);
	core_end_destroy(end);
}

static void aw_tx_next__segments_fill_emss(void **state)
{
	struct core_end *end = core_initiator(1448);
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
		core_expect_sq(&pair->a, AW_OP_SEND, AW_WC_SUCCESS);
		core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
		core_expect_sq(&pair->a, AW_OP_READ, AW_WC_SUCCESS);
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

static struct core_end *initiator_without_crc(void)
{
	struct aw_stream stream = core_stream(true, 65535);

	stream.crc = false;
	return core_end_create(&stream);
}

static void aw_tx_next__lends_only_large_payloads(void **state)
{
	struct core_end *end = initiator_without_crc();
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

/* What changes behind a CRC would end the stream: it is of octets that nobody else has. */
static void aw_tx_next__lends_nothing_under_a_crc(void **state)
{
	struct core_end *end = core_initiator(65535);
	struct aw_tx_out out = batch(end, AW_TX_ARENA_MIN, AW_TX_IOV_MIN);

	(void)state;
	core_post(end, AW_OP_WRITE, 64, 40000, 0);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	assert_int_equal(out.iov_count, 1);
	assert_ptr_equal(out.iov[0].base, out.arena);
	core_end_destroy(end);
}

/* Of memory that has no address TCP could read from, a driver's payloads are all copied. */
static void aw_tx_next__lends_nothing_that_is_to_be_copied(void **state)
{
	struct core_end *end = initiator_without_crc();
	struct aw_tx_out out = batch(end, AW_TX_ARENA_MIN, AW_TX_IOV_MIN);

	(void)state;
	end->qp.copies = true;
	core_post(end, AW_OP_WRITE, 64, AW_TX_COPY_MAX + 1, 0);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	assert_int_equal(out.iov_count, 1);
	assert_ptr_equal(out.iov[0].base, out.arena);
	core_end_destroy(end);
}

/* The segments before went out, and nothing of the one that cannot be read. */
static void each_gone(uint32_t len, unsigned int segments)
{
	struct core_pair *pair = core_pair_ready(1448);

	core_post(&pair->a, AW_OP_WRITE, 0, len, 0);
	pair->a.gone = pair->a.mem + len - 1;
	core_tx(&pair->a);
	assert_int_equal(pair->a.qp.state, AW_QP_TERMINATE);
	core_deliver(&pair->a, &pair->b);
	assert_int_equal(pair->b.placed, segments);
	assert_int_equal(pair->b.qp.peer_error, AW_E_LOCAL_CATASTROPHIC);
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_LOC_PROT_ERR);
	core_pair_destroy(pair);
}

static void aw_tx_next__payload_is_gone(void **state)
{
	(void)state;
	each_gone(100, 0);
	each_gone(1448 * 3, 3);
}

static void aw_tx_next__marked_payload_is_gone(void **state)
{
	struct aw_stream stream = core_stream(true, 1448);
	struct core_end *end;

	(void)state;
	stream.markers_tx = true;
	end = core_end_create(&stream);
	core_post(end, AW_OP_WRITE, 0, 100, 0);
	end->gone = end->mem;
	core_tx(end);
	assert_int_equal(end->qp.state, AW_QP_TERMINATE);
	core_expect_sq(end, AW_OP_WRITE, AW_WC_LOC_PROT_ERR);
	core_end_destroy(end);
}

/* RFC 5040 4.8: what the peer asked for is not there. */
static void aw_tx_next__source_of_a_response_is_gone(void **state)
{
	struct core_pair *pair = core_pair_ready(1448);

	(void)state;
	core_post(&pair->a, AW_OP_READ, 0, 5000, 0);
	pair->b.gone = pair->b.mem + 3000;
	core_tx(&pair->a);
	core_deliver(&pair->a, &pair->b);
	core_tx(&pair->b);
	core_deliver(&pair->b, &pair->a);
	assert_int_equal(pair->a.placed, 2);
	assert_int_equal(pair->a.qp.peer_error, AW_E_RDMAP_BOUNDS);
	core_expect_sq(&pair->a, AW_OP_READ, AW_WC_REM_ACCESS_ERR);
	core_pair_destroy(pair);
}

static void aw_tx_next__full_changes_nothing(void **state)
{
	struct core_end *end = initiator_without_crc();
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

static void aw_tx_next__full_with_markers(void **state)
{
	struct aw_stream stream = core_stream(true, 1448);
	struct core_end *end;
	struct aw_tx_out out;

	(void)state;
	stream.markers_tx = true;
	end = core_end_create(&stream);
	out = batch(end, 4 + 2 * 120 - 1, 1); /* 120 octets without markers, one marker */
	core_post(end, AW_OP_WRITE, 0, 100, 0);
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FULL);
	out.arena_len++;
	assert_int_equal(aw_tx_next(&end->qp, &out), AW_TX_FPDU);
	assert_int_equal(out.octets, 124);
	core_end_destroy(end);
}

/* RFC 5044 4.1: pad octets are zero. The arena is not, before. */
static void aw_tx_next__pads_with_zeros(void **state)
{
	struct core_end *end = core_initiator(65535);

	(void)state;
	core_post(end, AW_OP_WRITE, 0, 1, 0);
	core_tx(end);
	assert_int_equal(end->wire_len, 24);
	assert_memory_equal(end->wire + 17, "\0\0\0", 3);
	end->wire_len = 0;
	memset(end->arena, 0xee, 100);
	core_post(end, AW_OP_WRITE, 0, AW_TX_COPY_MAX + 1, 0);
	core_tx(end);
	assert_int_equal(end->wire_len, 16 + AW_TX_COPY_MAX + 8);
	assert_memory_equal(end->wire + 16 + AW_TX_COPY_MAX + 1, "\0\0\0", 3);
	core_end_destroy(end);
}

/* The source of a Read may change at any time: it is never lent. */
static void aw_tx_next__responses_are_copied(void **state)
{
	struct core_pair *pair = core_pair_ready(65535);
	struct aw_tx_out out = batch(&pair->b, AW_TX_ARENA_MIN, AW_TX_IOV_MIN);

	(void)state;
	core_post(&pair->a, AW_OP_READ, 0, 30000, 0);
	core_tx(&pair->a);
	core_deliver(&pair->a, &pair->b);
	assert_int_equal(aw_tx_next(&pair->b.qp, &out), AW_TX_FPDU);
	assert_int_equal(out.iov_count, 1);
	assert_ptr_equal(out.iov[0].base, out.arena);
	core_pair_destroy(pair);
}

/* The least batch that tx.h names takes any one FPDU. */
static void aw_tx_next__least_batch_suffices(void **state)
{
	(void)state;
	for (int form = 0; form < 4; form++) {
		struct aw_stream stream = core_stream(true, 1u << 20);
		struct core_end *end;
		struct aw_swqe *wqe;

		stream.markers_tx = form & 1;
		stream.crc = form & 2;
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
		core_expect_sq(end, AW_OP_SEND, AW_WC_SUCCESS);
		core_end_destroy(end);
	}
}

static void aw_tx_next__gathers_sges(void **state)
{
	struct core_pair *pair = core_pair_ready(300);
	struct aw_swqe *wqe = core_wr(&pair->a, AW_OP_SEND, 0, 700);
	struct aw_sge *sge = wqe->sge; /* as many as the slot has room for */

	(void)state;
	for (uint32_t at = 0; at < 2000; at++)
		pair->a.mem[at] = (uint8_t)(at * 5 + at / 256);
	wqe->sge_count = 4;
	sge[0] = (struct aw_sge){ CORE_IOVA + 1000, 1, CORE_STAG };
	sge[1] = (struct aw_sge){ 0, 0, 0xdead }; /* nothing, so no MR is looked for */
	sge[2] = (struct aw_sge){ CORE_IOVA + 300, 299, CORE_STAG };
	sge[3] = (struct aw_sge){ CORE_IOVA + 1200, 400, CORE_STAG };
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
	core_expect_sq(&pair->a, AW_OP_WRITE, AW_WC_SUCCESS);
	core_pair_destroy(pair);
}

/* What a message is to the octet, with a CRC and without; and that it counts in the stream's positions. */
static void aw_tx_move__golden(void **state)
{
	static const struct {
		enum move_kind kind;
		size_t size;
		const char *head; /* length, no segment, kind */
	} cases[] = {
		{ MOVE_HELLO, 36, "\0\36\0\1" },
		{ MOVE_VERDICT, 24, "\0\22\0\2" },
		{ MOVE_LAST, 8, "\0\2\0\3" },
	};

	(void)state;
	for (size_t i = 0; i < 2 * 3; i++) {
		struct move_msg msg = { .kind = cases[i % 3].kind };
		size_t size = cases[i % 3].size, len = move_data_len(msg.kind);
		struct aw_stream stream = core_stream(false, 1448);
		uint32_t crc = 0;

		stream.crc = i < 3;
		memset(msg.data, 0xab, sizeof(msg.data));
		struct core_end *end = core_end_create(&stream);
		struct aw_tx_out out = batch(end, AW_TX_ARENA_MIN, AW_TX_IOV_MIN);

		memset(end->arena, 0xff, sizeof(end->arena));
		aw_tx_move(&end->qp, &out, &msg);
		assert_int_equal(out.iov_count, 1);
		assert_int_equal(out.octets, size);
		assert_int_equal(out.iov[0].len, size);
		assert_memory_equal(out.iov[0].base, cases[i % 3].head, 4);
		assert_memory_equal(end->arena + 4, msg.data, len);
		assert_memory_equal(end->arena + 4 + len, "\0\0\0", fpdu_pad(2 + len));
		if (stream.crc)
			crc = crc32c_final(crc32c_update(CRC32C_INIT, end->arena, size - 4));
		assert_int_equal(get_le32(end->arena + size - 4), crc);
		assert_int_equal(end->qp.tx_pos, size);
		core_end_destroy(end);
	}
}

/* The direction has no CRC any more, though start-up agreed on one. */
static void aw_tx_next__crc_has_ended(void **state)
{
	struct core_end *end = core_initiator(1448);

	(void)state;
	end->qp.stream.crc_ended_tx = true;
	core_post(end, AW_OP_SEND, 0, 16, 0);
	core_tx(end);
	assert_int_equal(get_le32(end->wire + end->wire_len - 4), 0);
	core_end_destroy(end);
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
		cmocka_unit_test(aw_tx_next__lends_nothing_under_a_crc),
		cmocka_unit_test(aw_tx_next__lends_nothing_that_is_to_be_copied),
		cmocka_unit_test(aw_tx_next__payload_is_gone),
		cmocka_unit_test(aw_tx_next__marked_payload_is_gone),
		cmocka_unit_test(aw_tx_next__source_of_a_response_is_gone),
		cmocka_unit_test(aw_tx_next__full_changes_nothing),
		cmocka_unit_test(aw_tx_next__full_with_markers),
		cmocka_unit_test(aw_tx_next__pads_with_zeros),
		cmocka_unit_test(aw_tx_next__responses_are_copied),
		cmocka_unit_test(aw_tx_next__least_batch_suffices),
		cmocka_unit_test(aw_tx_next__gathers_sges),
		cmocka_unit_test(aw_tx_next__inline_is_taken_at_post),
		cmocka_unit_test(aw_tx_move__golden),
		cmocka_unit_test(aw_tx_next__crc_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
