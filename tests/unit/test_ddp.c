// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DDP headers against the octets of RFC 5041 4.2 and 4.3.
#include "wire/ddp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const uint8_t tagged[DDP_TAGGED_LEN] = { 0xc1, 0x40, 0x11, 0x22, 0x33, 0x44, 0x01,
						0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08 };
static const uint8_t untagged[DDP_UNTAGGED_LEN] = { 0x41, 0x44, 0xaa, 0xbb, 0xcc, 0xdd,
						    0x00, 0x00, 0x00, 0x03, 0x80, 0x00,
						    0x00, 0x01, 0x00, 0x01, 0x02, 0x03 };

static void ddp_put__tagged(void **state)
{
	struct ddp_hdr hdr = { .tagged = true,
			       .last = true,
			       .ulp_ctrl = 0x40,
			       .stag = 0x11223344,
			       .to = 0x0102030405060708 };
	uint8_t wire[DDP_TAGGED_LEN];

	(void)state;
	assert_int_equal(ddp_put(&hdr, wire), DDP_TAGGED_LEN);
	assert_memory_equal(wire, tagged, sizeof(tagged));
}

static void ddp_put__untagged(void **state)
{
	struct ddp_hdr hdr = { .last = true,
			       .ulp_ctrl = 0x44,
			       .ulp_rsvd = 0xaabbccdd,
			       .qn = 3,
			       .msn = 0x80000001,
			       .mo = 0x00010203 };
	uint8_t wire[DDP_UNTAGGED_LEN];

	(void)state;
	assert_int_equal(ddp_put(&hdr, wire), DDP_UNTAGGED_LEN);
	assert_memory_equal(wire, untagged, sizeof(untagged));
}

static void ddp_get__tagged(void **state)
{
	struct ddp_hdr hdr;

	(void)state;
	assert_int_equal(ddp_get(tagged, sizeof(tagged), &hdr), AW_OK);
	assert_true(hdr.tagged);
	assert_true(hdr.last);
	assert_int_equal(hdr.ulp_ctrl, 0x40);
	assert_int_equal(hdr.stag, 0x11223344);
	assert_int_equal(hdr.to, 0x0102030405060708);
}

static void ddp_get__untagged(void **state)
{
	struct ddp_hdr hdr;

	(void)state;
	assert_int_equal(ddp_get(untagged, sizeof(untagged), &hdr), AW_OK);
	assert_false(hdr.tagged);
	assert_true(hdr.last);
	assert_int_equal(hdr.ulp_ctrl, 0x44);
	assert_int_equal(hdr.ulp_rsvd, 0xaabbccdd);
	assert_int_equal(hdr.qn, 3);
	assert_int_equal(hdr.msn, 0x80000001);
	assert_int_equal(hdr.mo, 0x00010203);
}

static void ddp_get__reserved_bits_are_ignored(void **state)
{
	uint8_t wire[DDP_UNTAGGED_LEN] = { 0x3d };
	struct ddp_hdr hdr;

	(void)state;
	assert_int_equal(ddp_get(wire, sizeof(wire), &hdr), AW_OK);
	assert_false(hdr.tagged);
	assert_false(hdr.last);
}

static void ddp_get__too_short(void **state)
{
	struct ddp_hdr hdr = { .qn = 77 };

	(void)state;
	for (size_t len = 0; len < DDP_TAGGED_LEN; len++)
		assert_int_equal(ddp_get(tagged, len, &hdr), AW_E_DDP_CATASTROPHIC);
	for (size_t len = 0; len < DDP_UNTAGGED_LEN; len++)
		assert_int_equal(ddp_get(untagged, len, &hdr), AW_E_DDP_CATASTROPHIC);
	assert_int_equal(hdr.qn, 77);
}

static void ddp_get__wrong_version(void **state)
{
	struct ddp_hdr hdr = { .qn = 77 };

	(void)state;
	for (uint8_t version = 0; version < 4; version++) {
		uint8_t wire[DDP_UNTAGGED_LEN] = { 0 };

		if (version == DDP_VERSION)
			continue;
		wire[0] = version;
		assert_int_equal(ddp_get(wire, sizeof(wire), &hdr), AW_E_DDP_UNTAGGED_VERSION);
		wire[0] = 0x80 | version;
		assert_int_equal(ddp_get(wire, sizeof(wire), &hdr), AW_E_DDP_TAGGED_VERSION);
	}
	assert_int_equal(hdr.qn, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ddp_put__tagged),
		cmocka_unit_test(ddp_put__untagged),
		cmocka_unit_test(ddp_get__tagged),
		cmocka_unit_test(ddp_get__untagged),
		cmocka_unit_test(ddp_get__reserved_bits_are_ignored),
		cmocka_unit_test(ddp_get__too_short),
		cmocka_unit_test(ddp_get__wrong_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
