// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The offer of TLS behind the Request, and the frame that takes it (docs/extensions.md).
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
	.extensions = true,
	.placement = true,
	.waits = true,
	.host = true,
	.large_fpdus = AW_LARGE_AGREED,
};

static struct mpa_frame parsed(const uint8_t *octets, size_t len)
{
	struct mpa_frame frame;
	size_t used;

	assert_int_equal(mpa_parse(octets, len, &frame, &used), MPA_PARSE_OK);
	return frame;
}

/* The offer is taken by an end that has TLS; towards any other all else is agreed on as without it. */
static void aw_mpa_start_tls__when_both_have_it(void **state)
{
	static const uint8_t expected[MPA_HDR_LEN] = "MPA ID Rep Frame\x07\x02\0";

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct aw_mpa_local a = usual, b = usual;
		struct aw_mpa_result at_a, at_b;
		uint8_t buf[MPA_FRAME_MAX];
		struct mpa_frame frame;

		a.tls = i & 1;
		b.tls = i & 2;
		frame = parsed(buf, aw_mpa_request(&a, NULL, 0, buf));
		assert_int_equal(buf[16], a.tls ? 0x5b : 0x5f);
		assert_int_equal(aw_mpa_on_request(&b, &frame, &at_b), AW_SETUP_OK);
		assert_int_equal(at_b.tls, i == 3);
		assert_true(at_b.extensions && at_b.placement && at_b.waits && at_b.host &&
			    at_b.large_fpdus);
		frame = parsed(buf, aw_mpa_start_tls(buf));
		assert_memory_equal(buf, expected, MPA_HDR_LEN);
		assert_int_equal(aw_mpa_is_start_tls(&a, &frame), a.tls);
		assert_false(aw_mpa_is_wait(&a, &frame));
		frame = parsed(buf, aw_mpa_reply(&b, &at_b, false, NULL, 0, buf));
		assert_int_equal(buf[16], 0x5d);
		assert_int_equal(aw_mpa_on_reply(&a, &frame, &at_a), AW_SETUP_OK);
		assert_true(at_a.extensions && at_a.placement && at_a.host && at_a.large_fpdus);
	}
}

/* extensions=off means that none of these bits is set; nor has a Request of revision 1 any. */
static void aw_mpa_request__offers_tls_with_all_else(void **state)
{
	struct aw_mpa_local local = usual;
	uint8_t buf[MPA_FRAME_MAX];

	(void)state;
	local.tls = true;
	local.extensions = local.placement = false;
	aw_mpa_request(&local, NULL, 0, buf);
	assert_int_equal(buf[16], 0x58);
	local = usual;
	local.tls = true;
	local.revision = 1;
	aw_mpa_request(&local, NULL, 0, buf);
	assert_int_equal(buf[16], 0x40);
}

/* A frame of revision 2 with IRD and ORD, and these flags beside S. */
static struct mpa_frame enhanced_frame(enum mpa_kind kind, uint8_t flags)
{
	static const uint8_t pd[] = { 0xc0, 5, 0xc0, 5 };

	return (struct mpa_frame){
		.kind = kind,
		.flags = MPA_FLAG_ENHANCED | flags,
		.revision = 2,
		.pd = pd,
		.pd_len = sizeof(pd),
	};
}

static void aw_mpa_on_request__reads_the_offer(void **state)
{
	static const struct {
		uint8_t flags; /* beside S */
		bool tls, extensions;
	} cases[] = {
		{ 0x00, false, false }, { 0x01, false, false }, { 0x02, true, true },
		{ 0x03, true, true },	{ 0x04, false, true },	{ 0x05, false, true },
		{ 0x06, false, true },	{ 0x07, false, true },	{ 0x0a, true, true },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct mpa_frame frame = enhanced_frame(MPA_REQUEST, cases[i].flags);
		struct aw_mpa_local local = usual;
		struct aw_mpa_result result;

		local.tls = true;
		assert_int_equal(aw_mpa_on_request(&local, &frame, &result), AW_SETUP_OK);
		assert_int_equal(result.tls, cases[i].tls);
		assert_int_equal(result.extensions, cases[i].extensions);
		/* An end that agrees to less than the offer says nothing that could be the offer, sent back. */
		local.placement = false;
		assert_int_equal(aw_mpa_on_request(&local, &frame, &result), AW_SETUP_OK);
		assert_false(result.tls);
		assert_int_equal(result.extensions, (cases[i].flags & 0x04) != 0);
	}
}

/* What an initiator that offers TLS takes for agreement, and what for its flags sent back, as siw does. */
static void aw_mpa_on_reply__to_an_offer_of_tls(void **state)
{
	static const struct {
		uint8_t flags; /* beside S */
		bool extensions, large;
	} cases[] = {
		{ 0x04, true, false },	{ 0x0c, true, true },	{ 0x0d, true, true },
		{ 0x09, false, true },	{ 0x00, false, false }, { 0x08, false, false },
		{ 0x02, false, false }, { 0x0a, false, false }, { 0x0b, false, false },
		{ 0x06, false, false }, { 0x0f, false, false }, { 0x2c, false, false },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct mpa_frame frame = enhanced_frame(MPA_REPLY, cases[i].flags);
		struct aw_mpa_local local = usual;
		struct aw_mpa_result result;

		local.tls = true;
		assert_int_equal(aw_mpa_on_reply(&local, &frame, &result), AW_SETUP_OK);
		assert_int_equal(result.extensions, cases[i].extensions);
		assert_int_equal(result.placement, cases[i].extensions);
		assert_int_equal(result.large_fpdus, cases[i].large);
	}
}

static void aw_mpa_is_start_tls__only_that_frame(void **state)
{
	static const struct {
		enum mpa_kind kind;
		uint8_t flags, revision;
		uint16_t pd_len;
		bool start;
	} cases[] = {
		{ MPA_REPLY, 0x07, 2, 0, true },  { MPA_REQUEST, 0x07, 2, 0, false },
		{ MPA_REPLY, 0x07, 1, 0, false }, { MPA_REPLY, 0x07, 2, 1, false },
		{ MPA_REPLY, 0x06, 2, 0, false }, { MPA_REPLY, 0x03, 2, 0, false },
		{ MPA_REPLY, 0x17, 2, 4, false }, { MPA_REPLY, 0x47, 2, 0, false },
		{ MPA_REPLY, 0x0f, 2, 0, false }, { MPA_REPLY, 0x27, 2, 0, false },
	};
	static const uint8_t pd[4];

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct mpa_frame frame = {
			.kind = cases[i].kind,
			.flags = cases[i].flags,
			.revision = cases[i].revision,
			.pd = pd,
			.pd_len = cases[i].pd_len,
		};
		struct aw_mpa_local local = usual;

		assert_false(aw_mpa_is_start_tls(&local, &frame));
		local.tls = true;
		assert_int_equal(aw_mpa_is_start_tls(&local, &frame), cases[i].start);
		local.placement = false;
		assert_false(aw_mpa_is_start_tls(&local, &frame));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_mpa_start_tls__when_both_have_it),
		cmocka_unit_test(aw_mpa_request__offers_tls_with_all_else),
		cmocka_unit_test(aw_mpa_on_request__reads_the_offer),
		cmocka_unit_test(aw_mpa_on_reply__to_an_offer_of_tls),
		cmocka_unit_test(aw_mpa_is_start_tls__only_that_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
