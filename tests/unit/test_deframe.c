// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Framing: half and whole FPDUs, CRCs, markers; RFC 5044's own examples.
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

static void aw_rx_octets__siw_golden(void **state)
{
	struct core_end *end = core_responder();
	uint8_t octets[sizeof(core_siw_send)];

	(void)state;
	memcpy(octets, core_siw_send, sizeof(octets));
	core_recv(end, 42, 1000, 16);
	for (size_t n = 0; n < sizeof(octets); n++)
		assert_int_equal(aw_rx_octets(&end->qp, octets, n), 0);
	assert_false(end->qp.peer_ready);
	assert_int_equal(aw_rx_octets(&end->qp, octets, sizeof(octets)), sizeof(octets));
	assert_true(end->qp.peer_ready);
	assert_memory_equal(end->mem + 1000, core_siw_send + 20, 16);
	assert_int_equal(end->logged, 1);
	assert_int_equal(end->log[0].queue, AW_RQ);
	assert_int_equal(end->log[0].cqe.wr_id, 42);
	assert_int_equal(end->log[0].cqe.op, AW_OP_SEND);
	assert_int_equal(end->log[0].cqe.byte_len, 16);
	assert_int_equal(end->log[0].cqe.flags, 0);
	core_end_destroy(end);
}

static void aw_rx_octets__every_wrong_octet_is_found(void **state)
{
	(void)state;
	for (size_t i = 2; i < sizeof(core_siw_send); i++) {
		struct core_end *end = core_responder();
		uint8_t octets[sizeof(core_siw_send)];

		memcpy(octets, core_siw_send, sizeof(octets));
		octets[i] ^= 0x10;
		core_recv(end, 42, 1000, 16);
		assert_int_equal(aw_rx_octets(&end->qp, octets, sizeof(octets)), sizeof(octets));
		assert_int_equal(end->qp.error, AW_E_MPA_CRC);
		assert_int_equal(end->placed, 0);
		assert_int_equal(end->log[0].cqe.status, AW_WC_WR_FLUSH_ERR);
		/* RFC 5044 7.1.2 rule 4: still no valid FPDU, so not even a Terminate. */
		assert_false(core_tx_one(end));
		assert_true(aw_qp_tx_finished(&end->qp));
		core_end_destroy(end);
	}
}

static void aw_rx_octets__crc_off_is_not_checked(void **state)
{
	struct aw_stream stream = core_stream(false, 1448);
	struct core_end *end;
	uint8_t octets[sizeof(core_siw_send)];

	(void)state;
	stream.crc = false;
	end = core_end_create(&stream);
	memcpy(octets, core_siw_send, sizeof(octets));
	octets[39] ^= 1;
	core_recv(end, 42, 1000, 16);
	aw_rx_octets(&end->qp, octets, sizeof(octets));
	assert_int_equal(end->log[0].cqe.status, AW_WC_SUCCESS);
	core_end_destroy(end);
}

static void aw_rx_octets__several_and_a_part(void **state)
{
	struct core_end *end = core_responder();
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);
	uint8_t octets[200];
	size_t size;

	(void)state;
	core_recv(end, 1, 0, 10);
	core_recv(end, 2, 10, 10);
	size = core_fpdu(octets, &hdr, "abc", 3);
	hdr.msn = 2;
	size += core_fpdu(octets + size, &hdr, "defg", 4);
	memcpy(octets + size, core_siw_send, 9);
	assert_int_equal(aw_rx_octets(&end->qp, octets, size + 9), size);
	assert_int_equal(end->logged, 2);
	assert_memory_equal(end->mem + 10, "defg", 4);
	core_end_destroy(end);
}

static void aw_rx_octets__nothing_after_an_error(void **state)
{
	struct core_end *end = core_responder();
	struct ddp_hdr bad = core_tagged(RDMAP_WRITE, 0xbad, 0);
	struct ddp_hdr good = core_tagged(RDMAP_WRITE, CORE_STAG, CORE_IOVA);
	uint8_t octets[200];
	size_t size;

	(void)state;
	size = core_fpdu(octets, &bad, core_data, 5);
	size += core_fpdu(octets + size, &good, core_data, 5);
	assert_int_equal(aw_rx_octets(&end->qp, octets, size + 1), size + 1);
	assert_int_equal(end->qp.error, AW_E_DDP_TAGGED_STAG);
	assert_int_equal(end->placed, 0);
	assert_int_equal(core_ulpdu(end, &good, 5), AW_OK);
	assert_int_equal(end->placed, 0);
	core_end_destroy(end);
}

/* RFC 5044 figures 5 and 6, in the second half with the first FPDU that the RFC does not show. */
static size_t marked_stream(uint8_t *octets)
{
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);
	static uint8_t zeros[464], fpdu[600];
	size_t size, first;

	size = core_fpdu(fpdu, &hdr, zeros, 464);
	first = fpdu_insert_markers(octets, fpdu, size, 0);
	assert_int_equal(first, 492);
	put_le32(octets + first - 4, crc32c_final(crc32c_update(CRC32C_INIT, octets, first - 4)));
	hdr.msn = 2;
	size = core_fpdu(fpdu, &hdr, zeros, 24);
	size = fpdu_insert_markers(octets + first, fpdu, size, (uint32_t)first);
	memcpy(octets + first + size - 4, "\x84\x92\x58\x98", 4);
	return first + size;
}

/* The same two Sends without markers. */
static size_t plain_stream(uint8_t *octets)
{
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);
	size_t first = core_fpdu(octets, &hdr, core_data, 464);

	hdr.msn = 2;
	return first + core_fpdu(octets + first, &hdr, core_data, 24);
}

static void aw_rx_octets__markers_golden(void **state)
{
	struct aw_stream stream = core_stream(false, 1448);
	struct core_end *end;
	uint8_t octets[1000];
	size_t size;

	(void)state;
	stream.markers_rx = true;
	end = core_end_create(&stream);
	core_recv(end, 1, 0, 464);
	core_recv(end, 2, 0, 24);
	size = marked_stream(octets);
	assert_int_equal(size, 0x220);
	assert_int_equal(aw_rx_octets(&end->qp, octets, size), size);
	assert_int_equal(end->logged, 2);
	assert_int_equal(end->log[1].cqe.byte_len, 24);
	assert_int_equal(end->log[1].cqe.status, AW_WC_SUCCESS);
	core_end_destroy(end);
}

/* Held for a receive, an FPDU that was verified, and freed of its markers, comes again as it is. */
static void aw_rx_octets__held_for_a_receive(void **state)
{
	(void)state;
	for (int markers = 0; markers < 2; markers++) {
		struct aw_stream stream = core_stream(false, 1448);
		struct core_end *end;
		uint8_t octets[1000];
		size_t size, first;

		stream.markers_rx = markers;
		end = core_end_create(&stream);
		end->qp.rnr_holds = true;
		if (markers)
			size = marked_stream(octets);
		else
			size = plain_stream(octets);
		for (int i = 0; i < 3; i++)
			assert_int_equal(aw_rx_octets(&end->qp, octets, size), 0);
		assert_int_equal(end->qp.state, AW_QP_RTS);
		assert_int_equal(end->logged, 0);
		core_recv(end, 1, 0, 464);
		first = aw_rx_octets(&end->qp, octets, size);
		assert_true(first > 464 && first < size);
		assert_int_equal(end->logged, 1);
		core_recv(end, 2, 0, 24);
		assert_int_equal(aw_rx_octets(&end->qp, octets + first, size - first),
				 size - first);
		assert_int_equal(end->log[1].cqe.byte_len, 24);
		assert_int_equal(end->qp.rx_held, 0);
		core_end_destroy(end);
	}
}

static void aw_rx_octets__held_until_the_driver_gives_up(void **state)
{
	struct core_end *end = core_responder();
	uint8_t octets[1000];
	size_t size = plain_stream(octets);

	(void)state;
	end->qp.rnr_holds = true;
	assert_int_equal(aw_rx_octets(&end->qp, octets, size), 0);
	end->qp.rnr_holds = false;
	assert_int_equal(aw_rx_octets(&end->qp, octets, size), size);
	assert_int_equal(end->qp.error, AW_E_DDP_NO_BUFFER);
	assert_true(core_tx_one(end));
	assert_memory_equal(end->wire + 2 + DDP_UNTAGGED_LEN, "\x12\x02", 2);
	core_end_destroy(end);
}

/* RFC 5040 5.2.1: the queue of Read Requests has its depth from start-up, and no patience. */
static void aw_rx_octets__read_requests_are_not_held(void **state)
{
	struct core_end *end = core_responder();
	struct ddp_hdr hdr = core_untagged(RDMAP_READ_REQ, DDP_QN_READ, 1, 0);
	struct rdmap_read_req req = {
		.sink_stag = 1, .size = 1, .src_stag = CORE_STAG, .src_to = CORE_IOVA
	};
	uint8_t payload[RDMAP_READ_REQ_LEN];

	(void)state;
	end->qp.rnr_holds = true;
	rdmap_read_req_put(&req, payload);
	for (uint32_t i = 0; i <= CORE_READS; i++, hdr.msn++)
		core_inject(end, &hdr, payload, sizeof(payload));
	assert_int_equal(end->qp.error, AW_E_DDP_NO_BUFFER);
	core_end_destroy(end);
}

static void aw_rx_octets__marker_error(void **state)
{
	struct aw_stream stream = core_stream(false, 1448);
	struct core_end *end;
	uint8_t octets[1000];
	size_t size;

	(void)state;
	stream.markers_rx = true;
	end = core_end_create(&stream);
	core_recv(end, 1, 0, 464);
	size = marked_stream(octets);
	octets[0x203] = 0x18; /* the CRC is right, the marker is not */
	put_le32(octets + size - 4,
		 crc32c_final(crc32c_update(CRC32C_INIT, octets + 492, size - 492 - 4)));
	assert_int_equal(aw_rx_octets(&end->qp, octets, size), size);
	assert_int_equal(end->qp.error, AW_E_MPA_MARKER);
	assert_true(core_tx_one(end));
	assert_memory_equal(end->wire + 2 + DDP_UNTAGGED_LEN, "\x20\x03\0\0", 4);
	core_end_destroy(end);
}

static void aw_rx_octets__largest_fpdu(void **state)
{
	struct aw_stream stream = core_stream(false, 1448);
	uint8_t *plain = malloc(FPDU_MAX), *octets = malloc(FPDU_MAX);
	size_t len = FPDU_ULPDU_MAX - DDP_TAGGED_LEN, size;
	struct ddp_hdr hdr = core_tagged(RDMAP_WRITE, CORE_STAG, CORE_IOVA);

	(void)state;
	for (int markers = 0; markers < 2; markers++) {
		struct core_end *end;

		stream.markers_rx = markers;
		stream.crc = !markers;
		end = core_end_create(&stream);
		size = core_fpdu(plain, &hdr, core_data, len);
		if (markers)
			size = fpdu_insert_markers(octets, plain, size, 0);
		else
			memcpy(octets, plain, size);
		assert_true(size <= FPDU_MAX);
		assert_int_equal(aw_rx_octets(&end->qp, octets, size - 1), 0);
		assert_int_equal(aw_rx_octets(&end->qp, octets, size), size);
		assert_int_equal(end->qp.state, AW_QP_RTS);
		assert_memory_equal(end->mem, core_data, len);
		core_end_destroy(end);
	}
	free(plain);
	free(octets);
}

/* A message of a move as an FPDU of its own; returns its octets. */
static size_t move_fpdu(uint8_t *p, enum move_kind kind)
{
	const struct move_msg msg = { .kind = kind, .data = { 1, 2, 3 } };
	size_t len = move_put(&msg, p + FPDU_LEN_FIELD), size = fpdu_size(len);

	put_be16(p, (uint16_t)len);
	memset(p + FPDU_LEN_FIELD + len, 0, fpdu_pad(len));
	put_le32(p + size - FPDU_CRC_LEN,
		 crc32c_final(crc32c_update(CRC32C_INIT, p, size - FPDU_CRC_LEN)));
	return size;
}

/* The driver takes the message before the core reads on, for what is behind it may be no FPDU. */
static void aw_rx_octets__stops_behind_a_message_of_a_move(void **state)
{
	static const enum move_kind kinds[] = { MOVE_HELLO, MOVE_VERDICT, MOVE_LAST };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct aw_stream stream = core_stream(false, 1448);
		struct core_end *end;
		uint8_t octets[1000];
		size_t first, size;

		stream.moves = true;
		end = core_end_create(&stream);
		core_recv(end, 1, 0, 16);
		core_recv(end, 2, 16, 16);
		memcpy(octets, core_siw_send, sizeof(core_siw_send));
		first = sizeof(core_siw_send) + move_fpdu(octets + sizeof(core_siw_send), kinds[i]);
		size = first + plain_stream(octets + first);
		assert_int_equal(aw_rx_octets(&end->qp, octets, first - 1), sizeof(core_siw_send));
		assert_int_equal(end->qp.move.kind, MOVE_MSG_NONE);
		assert_int_equal(aw_rx_octets(&end->qp, octets + sizeof(core_siw_send),
					      size - sizeof(core_siw_send)),
				 first - sizeof(core_siw_send));
		assert_int_equal(end->qp.move.kind, kinds[i]);
		assert_int_equal(end->qp.move.data[0], kinds[i] == MOVE_LAST ? 0 : 1);
		assert_int_equal(end->qp.rx_pos, first);
		assert_int_equal(end->qp.state, AW_QP_RTS);
		assert_int_equal(end->logged, 1);
		core_end_destroy(end);
	}
}

/* As of any other segment of that version; one octet less than a header has no version. */
static void aw_rx_lent__refuses_a_message_of_a_move(void **state)
{
	static const struct {
		enum move_kind kind;
		enum aw_error error;
	} cases[] = {
		{ MOVE_HELLO, AW_E_DDP_UNTAGGED_VERSION },
		{ MOVE_VERDICT, AW_E_DDP_UNTAGGED_VERSION },
		{ MOVE_LAST, AW_E_DDP_CATASTROPHIC },
	};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct core_end *end = core_responder();
		uint8_t octets[1000];
		size_t size = move_fpdu(octets, cases[i].kind);

		assert_int_equal(aw_rx_lent(&end->qp, octets, size), size);
		assert_int_equal(end->qp.error, cases[i].error);
		assert_int_equal(end->qp.move.kind, MOVE_MSG_NONE);
		core_end_destroy(end);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_rx_octets__siw_golden),
		cmocka_unit_test(aw_rx_octets__every_wrong_octet_is_found),
		cmocka_unit_test(aw_rx_octets__crc_off_is_not_checked),
		cmocka_unit_test(aw_rx_octets__several_and_a_part),
		cmocka_unit_test(aw_rx_octets__nothing_after_an_error),
		cmocka_unit_test(aw_rx_octets__markers_golden),
		cmocka_unit_test(aw_rx_octets__held_for_a_receive),
		cmocka_unit_test(aw_rx_octets__held_until_the_driver_gives_up),
		cmocka_unit_test(aw_rx_octets__read_requests_are_not_held),
		cmocka_unit_test(aw_rx_octets__marker_error),
		cmocka_unit_test(aw_rx_octets__largest_fpdu),
		cmocka_unit_test(aw_rx_octets__stops_behind_a_message_of_a_move),
		cmocka_unit_test(aw_rx_lent__refuses_a_message_of_a_move),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
