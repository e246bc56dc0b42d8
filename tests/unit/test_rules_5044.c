// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rules of RFC 5044 on the stream of FPDUs as a whole, seen from a core's two ends.
// docs/rfc/5044.toml says which rule each test holds.
#include "../lib/core_pair.h"
#include "core/rx.h"
#include "core/tx_frame.h"
#include "wire/crc32c.h"
#include "wire/fpdu.h"
#include "wire/octets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

/* Section 3: though the length field, and loopback's segments, would allow more. */
static void rules_5044__no_ulpdu_beyond_64768(void **state)
{
	struct core_end *end = core_initiator(1u << 20);
	size_t longest = 0;

	(void)state;
	core_post(end, AW_OP_WRITE, 0, CORE_MEM, 0);
	core_post(end, AW_OP_SEND, 0, CORE_MEM, 0);
	for (; core_tx_one(end); end->wire_len = 0) {
		size_t len = get_be16(end->wire);

		assert_int_equal(end->wire_len, fpdu_size(len));
		longest = len > longest ? len : longest;
	}
	assert_int_equal(longest, 64768);
	core_end_destroy(end);
}

/* Sections 3 and 4.5: what is cut from here on is smaller, or larger; the message is the same. */
static void rules_5044__fpdus_follow_the_segments(void **state)
{
	static const uint32_t emss[] = { 1448, 300, 8948, 128, 2000 };
	struct core_pair *pair = core_pair_ready(1448);
	uint32_t segments = 0;

	(void)state;
	for (uint32_t at = 0; at < 60000; at++)
		pair->a.mem[at] = (uint8_t)(at * 3 + at / 256);
	core_recv(&pair->b, 1, 60000, 60000);
	core_post(&pair->a, AW_OP_SEND, 0, 60000, 0);
	for (;; segments++) {
		uint32_t now = emss[segments % 5];
		size_t most = now < 1448 ? fpdu_size(fpdu_mulpdu(now, 0)) : now;

		aw_qp_set_emss(&pair->a.qp, now);
		if (!core_tx_one(&pair->a))
			break;
		assert_true(pair->a.wire_len <= most);
		core_deliver(&pair->a, &pair->b);
	}
	assert_in_range(segments, 20, 30);
	assert_int_equal(core_cqe(&pair->b)->cqe.byte_len, 60000);
	assert_memory_equal(pair->b.mem + 60000, pair->a.mem, 60000);
	core_pair_destroy(pair);
}

/*
 * Section 3: FPDUs longer than a segment only for a peer that takes them, and none with markers, whose places hang on it. They
 * fill as many segments as they can.
 */
static void rules_5044__large_fpdus(void **state)
{
	const size_t large = 44 * 1448, first = large - fpdu_size(DDP_TAGGED_LEN);

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct aw_stream stream = core_stream(true, 1448);
		struct core_end *end;

		stream.large_fpdus = i & 1;
		stream.markers_tx = i & 2;
		end = core_end_create(&stream);
		core_post(end, AW_OP_WRITE, 0, 70000, 0);
		assert_true(core_tx_one(end));
		if (i == 1)
			assert_int_equal(end->wire_len, large);
		else
			assert_in_range(end->wire_len, 1400, 1448);
		/* A change of the path changes nothing where segments do not count. */
		aw_qp_set_emss(&end->qp, 536);
		end->wire_len = 0;
		assert_true(core_tx_one(end));
		if (i == 1)
			assert_int_equal(end->wire_len, fpdu_size(70000 - first + DDP_TAGGED_LEN));
		else
			assert_in_range(end->wire_len, 500, 536);
		core_end_destroy(end);
	}
}

/* Section 3: no FPDU is longer than MULPDU's most, however long the segments are. */
static void rules_5044__large_fpdus_of_any_segment(void **state)
{
	static const uint32_t segments[] = { 0,	    1,	   127,	  536,	 8948,
					     64775, 64776, 64777, 65483, 1 << 20 };

	(void)state;
	for (size_t i = 0; i < sizeof(segments) / sizeof(segments[0]); i++) {
		struct aw_stream stream = core_stream(true, segments[i]);
		uint32_t mulpdu, size;

		stream.large_fpdus = true;
		mulpdu = aw_tx_mulpdu(&stream);
		size = (uint32_t)fpdu_size(mulpdu);
		assert_in_range(mulpdu, 64768 / 2, 64768);
		if (segments[i] > 0 && segments[i] < 64776)
			assert_in_range(64776 / segments[i] * segments[i] - size, 0, 3);
		else
			assert_int_equal(size, 64776);
	}
}

/* A driver whose stream comes in records bounds large FPDUs by these, and no others. */
static void rules_5044__large_fpdus_of_a_record(void **state)
{
	static const uint32_t segments[] = { 536, 1448, 65483 };

	(void)state;
	for (size_t i = 0; i < sizeof(segments) / sizeof(segments[0]); i++) {
		struct aw_stream stream = core_stream(true, segments[i]);

		stream.fpdu_max = 16384;
		assert_true(fpdu_size(aw_tx_mulpdu(&stream)) <= segments[i]);
		stream.large_fpdus = true;
		assert_int_equal(fpdu_size(aw_tx_mulpdu(&stream)), 16384);
		stream.markers_tx = true;
		assert_int_equal(aw_tx_mulpdu(&stream),
				 fpdu_mulpdu(segments[i] < 32768 ? segments[i] : 32768, 1));
	}
}

/* Section 4.1: the pad counts for the CRC and for nothing else. */
static void rules_5044__pad_is_ignored(void **state)
{
	struct core_end *end = core_responder();
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);
	uint8_t fpdu[64];
	size_t size = core_fpdu(fpdu, &hdr, "abc", 3);

	(void)state;
	assert_int_equal(fpdu_pad(DDP_UNTAGGED_LEN + 3), 1);
	fpdu[size - 5] = 0xee;
	put_le32(fpdu + size - 4, crc32c_final(crc32c_update(CRC32C_INIT, fpdu, size - 4)));
	core_recv(end, 1, 0, 10);
	assert_int_equal(aw_rx_octets(&end->qp, fpdu, size), size);
	assert_int_equal(core_cqe(end)->cqe.byte_len, 3);
	assert_memory_equal(end->mem, "abc\0", 4);
	core_end_destroy(end);
}

/*
 * Sections 4.2 and 4.3, over some 40 FPDUs: a marker at the first octet and at every 512th, each
 * with a reserved half of zero and the distance to the length field of the FPDU it is in, or 0
 * between two of them.
 */
static void rules_5044__markers_where_they_belong(void **state)
{
	struct aw_stream stream = core_stream(true, 1448);
	uint32_t fpdu_at = 0, payload_left = 0;
	struct core_end *end;

	(void)state;
	stream.markers_tx = true;
	end = core_end_create(&stream);
	for (uint32_t i = 0; i < CORE_SQ; i++)
		core_post(end, AW_OP_WRITE, 0, (CORE_SQ - 1 - i) * 239, 0);
	core_tx(end);
	assert_true(end->wire_len > 40u * 512);
	for (uint32_t at = 0; at < end->wire_len; at++) {
		if (at % 512 == 0) {
			uint32_t distance = payload_left > 0 ? at - fpdu_at : 0;

			assert_int_equal(get_be32(end->wire + at), distance);
			at += 3;
			continue;
		}
		if (payload_left == 0) {
			fpdu_at = at;
			payload_left = (uint32_t)fpdu_size(get_be16(end->wire + at));
		}
		payload_left--;
	}
	assert_int_equal(payload_left, 0);
	core_end_destroy(end);
}

/* Section 7.1.1: none where the peer wants none, also where we want them ourselves. */
static void rules_5044__no_markers_unasked(void **state)
{
	struct aw_stream stream = core_stream(true, 1448);
	struct core_end *end;

	(void)state;
	stream.markers_rx = true;
	end = core_end_create(&stream);
	core_post(end, AW_OP_WRITE, 0, 1000, 0);
	core_tx(end);
	assert_int_equal(end->wire_len, fpdu_size(DDP_TAGGED_LEN + 1000));
	core_end_destroy(end);
}

/* Section 5.1: segment boundaries mean nothing. Every cut of three FPDUs, with markers. */
static void rules_5044__every_cut_is_the_same_stream(void **state)
{
	struct aw_stream a = core_stream(true, 600), b = core_stream(false, 600);
	static uint8_t octets[4096];
	size_t size;

	(void)state;
	a.markers_tx = b.markers_rx = true;
	struct core_end *from = core_end_create(&a);

	for (uint32_t i = 0; i < 3; i++)
		core_post(from, AW_OP_SEND, 0, 300 * i, 0);
	core_tx(from);
	size = from->wire_len;
	for (size_t cut = 0; cut <= size; cut++) {
		struct core_end *to = core_end_create(&b);
		size_t used;

		for (uint32_t i = 0; i < 3; i++)
			core_recv(to, i, 0, 1000);
		memcpy(octets, from->wire, size);
		used = aw_rx_octets(&to->qp, octets, cut);
		assert_true(used <= cut);
		assert_int_equal(aw_rx_octets(&to->qp, octets + used, size - used), size - used);
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(core_cqe(to)->cqe.byte_len, 300 * i);
		assert_int_equal(to->qp.state, AW_QP_RTS);
		core_end_destroy(to);
	}
	core_end_destroy(from);
}

/* Section 4.4: the marker between two FPDUs is covered by the CRC of the second. */
static void rules_5044__marker_between_is_under_the_crc(void **state)
{
	struct aw_stream stream = core_stream(false, 1448);
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);
	uint8_t plain[64], octets[64];
	struct core_end *end;
	size_t size = core_fpdu(plain, &hdr, "abcd", 4), marked;

	(void)state;
	stream.markers_rx = true;
	for (int reserved = 0; reserved < 2; reserved++) {
		end = core_end_create(&stream);
		core_recv(end, 1, 0, 10);
		marked = fpdu_insert_markers(octets, plain, size, 0);
		put_le32(octets + marked - 4,
			 crc32c_final(crc32c_update(CRC32C_INIT, octets, marked - 4)));
		octets[0] = (uint8_t)reserved; /* a bit that only the CRC guards */
		assert_int_equal(aw_rx_octets(&end->qp, octets, marked), marked);
		assert_int_equal(end->qp.error, reserved ? AW_E_MPA_CRC : AW_OK);
		core_end_destroy(end);
	}
}

/* Section 8: with CRCs off a wrong marker is still found. */
static void rules_5044__marker_is_checked_without_crc(void **state)
{
	struct aw_stream stream = core_stream(false, 1448);
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);
	uint8_t plain[64], octets[64];
	struct core_end *end;
	size_t size = core_fpdu(plain, &hdr, "abcd", 4), marked;

	(void)state;
	stream.markers_rx = true;
	stream.crc = false;
	end = core_end_create(&stream);
	core_recv(end, 1, 0, 10);
	marked = fpdu_insert_markers(octets, plain, size, 0);
	octets[3] = 4;
	assert_int_equal(aw_rx_octets(&end->qp, octets, marked), marked);
	assert_int_equal(end->qp.error, AW_E_MPA_MARKER);
	assert_int_equal(end->placed, 0);
	core_end_destroy(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_5044__no_ulpdu_beyond_64768),
		cmocka_unit_test(rules_5044__fpdus_follow_the_segments),
		cmocka_unit_test(rules_5044__large_fpdus),
		cmocka_unit_test(rules_5044__large_fpdus_of_any_segment),
		cmocka_unit_test(rules_5044__large_fpdus_of_a_record),
		cmocka_unit_test(rules_5044__pad_is_ignored),
		cmocka_unit_test(rules_5044__markers_where_they_belong),
		cmocka_unit_test(rules_5044__no_markers_unasked),
		cmocka_unit_test(rules_5044__every_cut_is_the_same_stream),
		cmocka_unit_test(rules_5044__marker_between_is_under_the_crc),
		cmocka_unit_test(rules_5044__marker_is_checked_without_crc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
