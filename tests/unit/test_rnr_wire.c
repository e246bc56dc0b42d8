// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The messages of wire/rnr.h, octet by octet.
#include "wire/rnr.h"

#include "wire/ddp.h"
#include "wire/move.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void rnr_put__as_documented(void **state)
{
	uint8_t p[RNR_LEN] = { 0x55, 0x55 };

	(void)state;
	rnr_put(RNR_NOT_READY, p);
	assert_int_equal(p[0], 0x00);
	assert_int_equal(p[1], 0x10);
	rnr_put(RNR_READY, p);
	assert_int_equal(p[0], 0x00);
	assert_int_equal(p[1], 0x11);
}

/* None of them is a DDP segment or a message of a move, and the reverse. */
static void rnr_get__all_of_two_octets(void **state)
{
	(void)state;
	for (uint32_t value = 0; value <= UINT16_MAX; value++) {
		const uint8_t p[RNR_LEN] = { (uint8_t)(value >> 8), (uint8_t)value };
		bool is_rnr = value == 0x10 || value == 0x11;
		enum rnr_kind kind = 0;
		struct move_msg msg;
		struct ddp_hdr hdr;

		assert_int_equal(rnr_get(p, sizeof(p), &kind), is_rnr);
		assert_int_equal(kind, is_rnr ? value : 0);
		assert_false(is_rnr && move_get(p, sizeof(p), &msg));
		assert_false(is_rnr && ddp_get(p, sizeof(p), &hdr) == AW_OK);
	}
}

static void rnr_get__has_one_length(void **state)
{
	static const uint8_t p[3] = { 0x00, 0x10, 0x00 };
	enum rnr_kind kind;

	(void)state;
	assert_false(rnr_get(p, 0, &kind));
	assert_false(rnr_get(p, 1, &kind));
	assert_true(rnr_get(p, 2, &kind));
	assert_false(rnr_get(p, 3, &kind));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rnr_put__as_documented),
		cmocka_unit_test(rnr_get__all_of_two_octets),
		cmocka_unit_test(rnr_get__has_one_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
