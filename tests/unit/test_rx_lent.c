// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Octets that stay where they are: placed from there, never written to, and not believed twice.
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

#define LONG 1000

static size_t two_sends(uint8_t *octets)
{
	struct ddp_hdr hdr = core_untagged(RDMAP_SEND, DDP_QN_SEND, 1, 0);
	size_t first = core_fpdu(octets, &hdr, core_data, LONG);

	hdr.msn = 2;
	return first + core_fpdu(octets + first, &hdr, core_data, 3);
}

static void aw_rx_lent__long_short_and_a_part(void **state)
{
	struct core_end *end = core_responder();
	uint8_t octets[2 * LONG];
	size_t size = two_sends(octets);

	(void)state;
	core_recv(end, 1, 0, LONG);
	core_recv(end, 2, LONG, 3);
	memcpy(octets + size, core_siw_send, 9);
	assert_int_equal(aw_rx_lent(&end->qp, octets, size + 9), size);
	assert_int_equal(end->logged, 2);
	assert_int_equal(end->log[0].cqe.byte_len, LONG);
	assert_memory_equal(end->mem, core_data, LONG);
	assert_memory_equal(end->mem + LONG, core_data, 3);
	core_end_destroy(end);
}

static void aw_rx_lent__nothing_of_a_part(void **state)
{
	struct core_end *end = core_responder();
	uint8_t octets[2 * LONG];

	(void)state;
	two_sends(octets);
	core_recv(end, 1, 0, LONG);
	for (size_t n = 0; n < LONG; n++)
		assert_int_equal(aw_rx_lent(&end->qp, octets, n), 0);
	assert_int_equal(end->placed, 0);
	assert_int_equal(end->qp.rx_pos, 0);
	core_end_destroy(end);
}

static void aw_rx_lent__every_wrong_octet_is_found(void **state)
{
	uint8_t octets[2 * LONG];

	(void)state;
	two_sends(octets);
	for (size_t i = 2; i < LONG; i++) {
		struct core_end *end = core_responder();

		octets[i] ^= 0x10;
		core_recv(end, 1, 0, LONG);
		assert_int_equal(aw_rx_lent(&end->qp, octets, sizeof(octets)), sizeof(octets));
		assert_int_equal(end->qp.error, AW_E_MPA_CRC);
		assert_int_equal(end->placed, 0);
		octets[i] ^= 0x10;
		core_end_destroy(end);
	}
}

static void aw_rx_lent__octets_with_markers_are_not_taken(void **state)
{
	struct aw_stream stream = core_stream(false, 1448);
	struct core_end *end;
	uint8_t octets[2 * LONG];

	(void)state;
	stream.markers_rx = true;
	end = core_end_create(&stream);
	core_recv(end, 1, 0, LONG);
	assert_int_equal(aw_rx_lent(&end->qp, octets, two_sends(octets)), 0);
	assert_int_equal(end->qp.state, AW_QP_RTS);
	core_end_destroy(end);
}

/* The one that waits is for aw_rx_octets to hold; until it is gone nothing behind it is taken. */
static void aw_rx_lent__stops_where_a_receive_is_missing(void **state)
{
	struct core_end *end = core_responder();
	uint8_t octets[2 * LONG];
	size_t size = two_sends(octets), first = fpdu_size(DDP_UNTAGGED_LEN + LONG);

	(void)state;
	end->qp.rnr_holds = true;
	core_recv(end, 1, 0, LONG);
	assert_int_equal(aw_rx_lent(&end->qp, octets, size), first);
	assert_int_equal(aw_rx_lent(&end->qp, octets + first, size - first), 0);
	assert_int_equal(end->qp.rx_held, 0);
	assert_int_equal(aw_rx_octets(&end->qp, octets + first, size - first), 0);
	core_recv(end, 2, 0, LONG);
	assert_int_equal(aw_rx_lent(&end->qp, octets + first, size - first), 0);
	assert_int_equal(aw_rx_octets(&end->qp, octets + first, size - first), size - first);
	assert_int_equal(end->logged, 2);
	core_end_destroy(end);
}

static uint8_t *others; /* whose sender writes to them while they are read */

static uint32_t crc_then_write(uint32_t crc, const void *data, size_t len)
{
	crc = crc32c_update(crc, data, len);
	memset(others, 0xff, FPDU_LEN_FIELD + DDP_TAGGED_LEN);
	return crc;
}

/* As far as it decides anything: another payload is the sender's own affair. */
static void aw_rx_lent__what_was_read_stays_read(void **state)
{
	static const size_t sizes[] = { 3, LONG };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct core_end *end = core_responder();
		struct ddp_hdr hdr = core_tagged(RDMAP_WRITE, CORE_STAG, CORE_IOVA);
		struct aw_ops ops = *end->qp.ops;
		uint8_t octets[2 * LONG];
		size_t size = core_fpdu(octets, &hdr, core_data, sizes[i]);

		others = octets;
		ops.crc32c = crc_then_write;
		end->qp.ops = &ops;
		assert_int_equal(aw_rx_lent(&end->qp, octets, size), size);
		assert_int_equal(end->qp.state, AW_QP_RTS);
		assert_memory_equal(end->mem, core_data, sizes[i]);
		assert_int_equal(end->mem[sizes[i]], 0);
		core_end_destroy(end);
	}
}

static const uint8_t *pieces[2]; /* of an FPDU that begins at address 0 for the core */
static size_t first_len;
static bool (*place_flat)(void *ctx, const struct aw_mr *mr, uint8_t *dst, const uint8_t *src,
			  size_t len);

/* As a driver's whose src is an offset in its pieces. */
static bool place_pieces(void *ctx, const struct aw_mr *mr, uint8_t *dst, const uint8_t *src,
			 size_t len)
{
	size_t at = (uintptr_t)src;
	size_t first = at < first_len ? first_len - at : 0;

	if (first > len)
		first = len;
	if (first > 0 && !place_flat(ctx, mr, dst, pieces[0] + at, first))
		return false;
	return place_flat(ctx, mr, dst + first, pieces[1] + at + first - first_len, len - first);
}

/* The FPDU at octets in two pieces, each in memory of its own; to be freed. */
static struct aw_rx_scattered scattered(const uint8_t *octets, size_t size, size_t first)
{
	uint32_t crc = crc32c_update(CRC32C_INIT, octets, size - FPDU_CRC_LEN);
	uint8_t *copies[2] = { malloc(first), malloc(size - first) };

	assert_true(copies[0] && copies[1]);
	memcpy(copies[0], octets, first);
	memcpy(copies[1], octets + first, size - first);
	pieces[0] = copies[0];
	pieces[1] = copies[1];
	first_len = first;
	return (struct aw_rx_scattered){ .head = octets,
					 .size = size,
					 .crc = crc,
					 .crc_field = get_le32(octets + size - FPDU_CRC_LEN) };
}

static size_t take_scattered(struct core_end *end, const uint8_t *octets, size_t size, size_t first)
{
	struct aw_rx_scattered fpdu = scattered(octets, size, first);
	struct aw_ops ops = *end->qp.ops;
	const struct aw_ops *before = end->qp.ops;
	size_t taken;

	place_flat = ops.place;
	ops.place = place_pieces;
	end->qp.ops = &ops;
	taken = aw_rx_scattered(&end->qp, &fpdu);
	end->qp.ops = before;
	free((uint8_t *)pieces[0]);
	free((uint8_t *)pieces[1]);
	return taken;
}

static void aw_rx_scattered__cut_anywhere(void **state)
{
	/* What is placed begins and ends at other octets than the pieces. */
	const struct aw_sge sges[] = { { CORE_IOVA, 333, CORE_STAG },
				       { CORE_IOVA + 333, LONG - 333, CORE_STAG } };
	uint8_t octets[2 * LONG];
	size_t size = fpdu_size(DDP_UNTAGGED_LEN + LONG);

	(void)state;
	two_sends(octets);
	for (size_t first = 1; first < size; first++) {
		struct core_end *end = core_responder();

		assert_true(aw_rq_post(&end->rq, 1, sges, 2));
		assert_int_equal(take_scattered(end, octets, size, first), size);
		assert_int_equal(end->qp.rx_pos, size);
		assert_int_equal(end->logged, 1);
		assert_int_equal(end->log[0].cqe.byte_len, LONG);
		assert_memory_equal(end->mem, core_data, LONG);
		core_end_destroy(end);
	}
}

static void aw_rx_scattered__wrong_crc(void **state)
{
	struct core_end *end = core_responder();
	uint8_t octets[2 * LONG];
	size_t size = fpdu_size(DDP_UNTAGGED_LEN + LONG);

	(void)state;
	two_sends(octets);
	octets[size - 1] ^= 1;
	core_recv(end, 1, 0, LONG);
	assert_int_equal(take_scattered(end, octets, size, 500), size);
	assert_int_equal(end->qp.error, AW_E_MPA_CRC);
	assert_int_equal(end->placed, 0);
	/* Behind an error all is dropped. */
	assert_int_equal(take_scattered(end, octets, size, 500), size);
	assert_int_equal(end->placed, 0);
	core_end_destroy(end);
}

static void aw_rx_scattered__waits_like_lent(void **state)
{
	struct core_end *end = core_responder();
	uint8_t octets[2 * LONG];
	size_t size = fpdu_size(DDP_UNTAGGED_LEN + LONG);

	(void)state;
	two_sends(octets);
	end->qp.rnr_holds = true;
	assert_int_equal(take_scattered(end, octets, size, 500), 0);
	assert_int_equal(end->qp.rx_pos, 0);
	assert_int_equal(aw_rx_octets(&end->qp, octets, size), 0);
	core_recv(end, 1, 0, LONG);
	assert_int_equal(take_scattered(end, octets, size, 500), 0);
	assert_int_equal(aw_rx_octets(&end->qp, octets, size), size);
	assert_int_equal(end->logged, 1);
	core_end_destroy(end);
}

static void aw_rx_scattered__markers_are_not_taken(void **state)
{
	struct aw_stream stream = core_stream(false, 1448);
	struct core_end *end;
	uint8_t octets[2 * LONG];

	(void)state;
	stream.markers_rx = true;
	end = core_end_create(&stream);
	two_sends(octets);
	core_recv(end, 1, 0, LONG);
	assert_int_equal(take_scattered(end, octets, fpdu_size(DDP_UNTAGGED_LEN + LONG), 500), 0);
	core_end_destroy(end);
}

static void aw_rx_wanted__length_then_all(void **state)
{
	struct core_end *end = core_responder();
	uint8_t octets[2 * LONG];
	size_t size = fpdu_size(DDP_UNTAGGED_LEN + LONG);

	(void)state;
	two_sends(octets);
	for (size_t n = 0; n < FPDU_LEN_FIELD; n++)
		assert_int_equal(aw_rx_wanted(&end->qp, octets, n), FPDU_LEN_FIELD);
	assert_int_equal(aw_rx_wanted(&end->qp, octets, FPDU_LEN_FIELD), size);
	assert_int_equal(aw_rx_wanted(&end->qp, octets, size), size);
	core_end_destroy(end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_rx_lent__long_short_and_a_part),
		cmocka_unit_test(aw_rx_lent__nothing_of_a_part),
		cmocka_unit_test(aw_rx_lent__every_wrong_octet_is_found),
		cmocka_unit_test(aw_rx_lent__octets_with_markers_are_not_taken),
		cmocka_unit_test(aw_rx_lent__stops_where_a_receive_is_missing),
		cmocka_unit_test(aw_rx_lent__what_was_read_stays_read),
		cmocka_unit_test(aw_rx_scattered__cut_anywhere),
		cmocka_unit_test(aw_rx_scattered__wrong_crc),
		cmocka_unit_test(aw_rx_scattered__waits_like_lent),
		cmocka_unit_test(aw_rx_scattered__markers_are_not_taken),
		cmocka_unit_test(aw_rx_wanted__length_then_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
