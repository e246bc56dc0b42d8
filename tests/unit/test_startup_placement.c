// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How two ends agree on Atomic Write and Flush (docs/extensions.md), beside what they agree on else.
#include "core/startup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct aw_mpa_local usual = {
	.revision = 2,
	.crc = true,
	.rtr = MPA_RTR_WRITE,
	.ird = 8,
	.ord = 8,
};

static struct mpa_frame parsed(const uint8_t *octets, size_t len)
{
	struct mpa_frame frame;
	size_t used;

	assert_int_equal(mpa_parse(octets, len, &frame, &used), MPA_PARSE_OK);
	return frame;
}

/* Offered and agreed to beside the others, never alone; with and without large FPDUs. */
static void aw_mpa_placement__when_both_want_it(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 32; i++) {
		struct aw_mpa_local a = usual, b = usual;
		uint8_t request[MPA_FRAME_MAX], reply[MPA_FRAME_MAX], large = i & 16 ? 8 : 0;
		struct aw_mpa_result at_a, at_b;
		struct mpa_frame frame;
		size_t len;

		a.extensions = i & 1;
		b.extensions = i & 2;
		a.placement = i & 4;
		b.placement = i & 8;
		if (large)
			a.large_fpdus = b.large_fpdus = AW_LARGE_AGREED;
		frame = parsed(request, aw_mpa_request(&a, NULL, 0, request));
		assert_int_equal(request[16], ((i & 5) == 5 ? 0x56 : i & 1 ? 0x54 : 0x50) | large);
		assert_int_equal(aw_mpa_on_request(&b, &frame, &at_b), AW_SETUP_OK);
		assert_int_equal(at_b.extensions, (i & 3) == 3);
		assert_int_equal(at_b.placement, (i & 15) == 15);
		len = aw_mpa_reply(&b, &at_b, false, NULL, 0, reply);
		frame = parsed(reply, len);
		if ((i & 3) == 3)
			assert_int_equal(reply[16], ((i & 15) == 15 ? 0x54 : 0x52) | large);
		assert_int_equal(aw_mpa_on_reply(&a, &frame, &at_a), AW_SETUP_OK);
		assert_int_equal(at_a.extensions, (i & 3) == 3);
		assert_int_equal(at_a.placement, (i & 15) == 15);
		assert_int_equal(at_a.large_fpdus, large != 0);
		assert_int_equal(at_b.large_fpdus, large != 0);
	}
}

static void aw_mpa_placement__replies(void **state)
{
	static const struct {
		uint8_t flags; /* beside S */
		bool extensions, placement;
	} cases[] = {
		{ 0x04, true, true },	{ 0x0c, true, true },
		{ 0x02, true, false }, /* an older anywarp */
		{ 0x06, false, false }, /* the Request's flags sent back, as siw does */
		{ 0x0e, false, false }, { 0x0f, false, false },
		{ 0x00, false, false }, { 0x08, false, false },
		{ 0x24, false, false },
	};
	static const uint8_t pd[] = { 0xc0, 5, 0xc0, 5 };

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mpa_frame frame = {
			.kind = MPA_REPLY,
			.flags = MPA_FLAG_ENHANCED | cases[i].flags,
			.revision = 2,
			.pd = pd,
			.pd_len = sizeof(pd),
		};
		struct aw_mpa_local local = usual;
		struct aw_mpa_result result;

		local.extensions = local.placement = true;
		assert_int_equal(aw_mpa_on_reply(&local, &frame, &result), AW_SETUP_OK);
		assert_int_equal(result.extensions, cases[i].extensions);
		assert_int_equal(result.placement, cases[i].placement);
		/* Who did not offer takes 0x04 for its own offer sent back. */
		local.placement = false;
		assert_int_equal(aw_mpa_on_reply(&local, &frame, &result), AW_SETUP_OK);
		assert_int_equal(result.extensions, cases[i].flags == 0x02);
		assert_false(result.placement);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_mpa_placement__when_both_want_it),
		cmocka_unit_test(aw_mpa_placement__replies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
