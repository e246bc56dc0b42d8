// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Octets that stay where they are: placed from there, never written to, and not believed twice.
#include "../lib/core_pair.h"

#include "wire/fpdu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
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
		cmocka_unit_test(aw_rx_wanted__length_then_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
