// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Terminate payloads against the octets of RFC 5040 4.8.
#include "wire/term.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static const uint8_t ddp_untagged[18] = { 0x41, 0x43, [9] = 0, [13] = 1, [17] = 9 };
static const uint8_t ddp_tagged[14] = { 0xc1, 0x40, 1, 2, 3, 4 };
static const uint8_t read_req[TERM_RDMAP_MAX] = { 0xde, 0xad, [27] = 0x77 };

static void term_put__message_too_long(void **state)
{
	struct term_msg msg = {
		.error = AW_E_DDP_TOO_LONG,
		.has_seg_len = true,
		.has_ddp = true,
		.seg_len = 0x1234,
		.ddp_len = sizeof(ddp_untagged),
		.ddp = ddp_untagged,
	};
	static const uint8_t golden[] = { 0x12, 0x05, 0xc0, 0x00, 0x12, 0x34 };
	uint8_t wire[TERM_MAX];

	(void)state;
	assert_int_equal(term_put(&msg, wire), 24);
	assert_memory_equal(wire, golden, sizeof(golden));
	assert_memory_equal(wire + 6, ddp_untagged, sizeof(ddp_untagged));
}

static void term_put__no_headers(void **state)
{
	struct term_msg msg = { .error = AW_E_MPA_CRC };
	static const uint8_t golden[] = { 0x20, 0x02, 0x00, 0x00 };
	uint8_t wire[TERM_MAX];

	(void)state;
	assert_int_equal(term_put(&msg, wire), 4);
	assert_memory_equal(wire, golden, sizeof(golden));
}

static void term_put__everything_is_term_max(void **state)
{
	struct term_msg msg = {
		.error = AW_E_RDMAP_ACCESS,
		.has_seg_len = true,
		.has_ddp = true,
		.has_rdmap = true,
		.seg_len = 46,
		.ddp_len = sizeof(ddp_untagged),
		.ddp = ddp_untagged,
		.rdmap = read_req,
	};
	static const uint8_t golden[] = { 0x01, 0x02, 0xe0, 0x00, 0x00, 0x2e };
	uint8_t wire[TERM_MAX];

	(void)state;
	assert_int_equal(term_put(&msg, wire), TERM_MAX);
	assert_memory_equal(wire, golden, sizeof(golden));
	assert_memory_equal(wire + 24, read_req, sizeof(read_req));
}

/* RFC 5040 4.8: the length must be present when D is set, valid only when M is. */
static void term_put__ddp_without_seg_len(void **state)
{
	struct term_msg msg = { .error = AW_E_DDP_QN,
				.has_ddp = true,
				.seg_len = 0x1234,
				.ddp_len = sizeof(ddp_tagged),
				.ddp = ddp_tagged };
	static const uint8_t golden[] = { 0x12, 0x01, 0x40, 0x00, 0x00, 0x00, 0xc1 };
	uint8_t wire[TERM_MAX];

	(void)state;
	assert_int_equal(term_put(&msg, wire), 20);
	assert_memory_equal(wire, golden, sizeof(golden));
}

static void term_get__everything(void **state)
{
	uint8_t wire[TERM_MAX] = { 0x01, 0x02, 0xe0, 0x00, 0x00, 0x2e };
	struct term_msg msg;

	(void)state;
	memcpy(wire + 6, ddp_untagged, sizeof(ddp_untagged));
	memcpy(wire + 24, read_req, sizeof(read_req));
	assert_true(term_get(wire, sizeof(wire), &msg));
	assert_int_equal(msg.error, AW_E_RDMAP_ACCESS);
	assert_true(msg.has_seg_len);
	assert_int_equal(msg.seg_len, 46);
	assert_true(msg.has_ddp);
	assert_int_equal(msg.ddp_len, 18);
	assert_ptr_equal(msg.ddp, wire + 6);
	assert_true(msg.has_rdmap);
	assert_ptr_equal(msg.rdmap, wire + 24);
	assert_false(msg.mirrored);
}

static void term_get__tagged_header(void **state)
{
	uint8_t wire[20] = { 0x11, 0x01, 0xdf, 0xff, 0x00, 0x2e };
	struct term_msg msg;

	(void)state;
	memcpy(wire + 6, ddp_tagged, sizeof(ddp_tagged));
	assert_true(term_get(wire, sizeof(wire), &msg));
	assert_int_equal(msg.error, AW_E_DDP_TAGGED_BOUNDS);
	assert_int_equal(msg.ddp_len, 14);
	assert_false(msg.has_rdmap);
	assert_null(msg.rdmap);
}

static void term_get__unknown_error_is_kept(void **state)
{
	static const uint8_t wire[4] = { 0xfe, 0xdc };
	struct term_msg msg;

	(void)state;
	assert_true(term_get(wire, sizeof(wire), &msg));
	assert_int_equal(aw_error_layer(msg.error), 0xf);
	assert_int_equal(aw_error_type(msg.error), 0xe);
	assert_int_equal(aw_error_code(msg.error), 0xdc);
	assert_false(msg.has_seg_len || msg.has_ddp || msg.has_rdmap);
}

/* Linux's siw on little-endian: layer and type swapped, header control in the wrong bits. */
static void term_get__siw(void **state)
{
	uint8_t wire[24] = { 0x21, 0x05, 0x03, 0x00 };
	struct term_msg msg;

	(void)state;
	assert_true(term_get(wire, sizeof(wire), &msg));
	assert_int_equal(aw_error_layer(msg.error), 2);
	assert_int_equal(aw_error_type(msg.error), 1);
	assert_false(msg.has_ddp);
	assert_true(msg.mirrored);
	assert_int_equal(aw_error_mirrored(msg.error), AW_E_DDP_TOO_LONG);
}

/* All eight header controls, both DDP header lengths: the exact length passes, one less fails. */
static void term_get__every_length(void **state)
{
	(void)state;
	for (unsigned int bits = 0; bits < 16; bits++) {
		bool tagged = bits & 1, m = bits & 8, d = bits & 4, r = bits & 2;
		uint8_t wire[TERM_MAX] = { 0x12, 0x05, (uint8_t)(bits << 4 & 0xe0), 0,
					   0,	 0,    tagged ? 0x81 : 0x01 };
		size_t need = 4 + (m || d ? 2 : 0) + (d ? (tagged ? 14 : 18) : 0) + (r ? 28 : 0);
		struct term_msg msg = { .ddp_len = 77 };

		for (size_t len = 0; len < need; len++)
			assert_false(term_get(wire, len, &msg));
		assert_int_equal(msg.ddp_len, 77);
		for (size_t len = need; len <= sizeof(wire); len++)
			assert_true(term_get(wire, len, &msg));
		assert_int_equal(msg.ddp_len, d ? (tagged ? 14 : 18) : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(term_put__message_too_long),
		cmocka_unit_test(term_put__no_headers),
		cmocka_unit_test(term_put__everything_is_term_max),
		cmocka_unit_test(term_put__ddp_without_seg_len),
		cmocka_unit_test(term_get__everything),
		cmocka_unit_test(term_get__tagged_header),
		cmocka_unit_test(term_get__unknown_error_is_kept),
		cmocka_unit_test(term_get__siw),
		cmocka_unit_test(term_get__every_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
