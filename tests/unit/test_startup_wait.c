// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The wait, by which a responder's end says that it lives, and the agreement to it (docs/extensions.md).
#include "core/startup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct aw_mpa_local usual = {
	.revision = 2,
	.crc = true,
	.p2p = true,
	.rtr = MPA_RTR_WRITE | MPA_RTR_READ,
	.ird = 16,
	.ord = 8,
};
static const struct aw_mpa_local plain = {
	.revision = 1,
	.crc = true,
	.ird = MPA_IRD_ORD_NONE,
	.ord = MPA_IRD_ORD_NONE,
};

/* docs/extensions.md: a Request says that its end takes waits; the responder sends them to no other. */
static void aw_mpa_wait__when_both_have_them(void **state)
{
	static const uint8_t expected[MPA_HDR_LEN] = "MPA ID Rep Frame\x06\x02\0";

	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		struct aw_mpa_local a = usual, b = usual;
		bool agreed = i == 15;
		uint8_t buf[MPA_FRAME_MAX];
		struct aw_mpa_result result;
		struct mpa_frame frame;
		size_t used;

		a.extensions = i & 1;
		b.extensions = i & 2;
		a.waits = a.placement = i & 4;
		b.waits = b.placement = i & 8;
		size_t len = aw_mpa_request(&a, NULL, 0, buf);

		assert_int_equal(buf[16] & 0x06, !a.extensions ? 0 : a.waits ? 0x06 : 0x04);
		assert_int_equal(mpa_parse(buf, len, &frame, &used), MPA_PARSE_OK);
		assert_int_equal(aw_mpa_on_request(&b, &frame, &result), AW_SETUP_OK);
		assert_int_equal(result.waits, agreed);
		assert_int_equal(aw_mpa_wait(buf), MPA_HDR_LEN);
		assert_memory_equal(buf, expected, MPA_HDR_LEN);
		assert_int_equal(mpa_parse(buf, MPA_HDR_LEN, &frame, &used), MPA_PARSE_OK);
		assert_int_equal(aw_mpa_is_wait(&a, &frame), a.extensions && a.waits);
	}
}

/* Neither a Reply, nor the Request's flags sent back, nor a frame with anything else in it. */
static void aw_mpa_is_wait__only_that_frame(void **state)
{
	static const struct {
		enum mpa_kind kind;
		uint8_t flags, revision;
		uint16_t pd_len;
		bool wait;
	} cases[] = {
		{ MPA_REPLY, 0x06, 2, 0, true },  { MPA_REQUEST, 0x06, 2, 0, false },
		{ MPA_REPLY, 0x06, 1, 0, false }, { MPA_REPLY, 0x06, 2, 1, false },
		{ MPA_REPLY, 0x04, 2, 0, false }, { MPA_REPLY, 0x02, 2, 0, false },
		{ MPA_REPLY, 0x56, 2, 4, false }, { MPA_REPLY, 0x16, 2, 4, false },
		{ MPA_REPLY, 0x26, 2, 0, false }, { MPA_REPLY, 0x46, 2, 0, false },
		{ MPA_REPLY, 0x86, 2, 0, false }, { MPA_REPLY, 0x07, 2, 0, false },
	};
	static const uint8_t pd[4];

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mpa_frame frame = {
			.kind = cases[i].kind,
			.flags = cases[i].flags,
			.revision = cases[i].revision,
			.pd = pd,
			.pd_len = cases[i].pd_len,
		};
		struct aw_mpa_local local = usual, old = plain;

		assert_false(aw_mpa_is_wait(&local, &frame));
		local.extensions = local.placement = local.waits = true;
		assert_int_equal(aw_mpa_is_wait(&local, &frame), cases[i].wait);
		/* A Request of revision 1 has not said that it takes them. */
		old.extensions = old.placement = old.waits = true;
		assert_false(aw_mpa_is_wait(&old, &frame));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_mpa_wait__when_both_have_them),
		cmocka_unit_test(aw_mpa_is_wait__only_that_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
