// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MPA Request and Reply frames against the octets of RFC 5044 7.1.1 and RFC 6581 4 and 9.
#include "wire/mpa.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define REQ_KEY "MPA ID Req Frame"
#define REP_KEY "MPA ID Rep Frame"

static const uint8_t *octets(const char *s)
{
	return (const uint8_t *)s;
}

/* The Request of Linux's siw: C and S set, revision 2, IRD and ORD 1, nothing from the ULP. */
static const char siw_request[] = REQ_KEY "\x50\x02\x00\x04\x00\x01\x00\x01";

static void mpa_parse__siw_request(void **state)
{
	struct mpa_frame frame;
	size_t used;

	(void)state;
	assert_int_equal(mpa_parse(octets(siw_request), 24, &frame, &used), MPA_PARSE_OK);
	assert_int_equal(used, 24);
	assert_int_equal(frame.kind, MPA_REQUEST);
	assert_int_equal(frame.flags, MPA_FLAG_CRC | MPA_FLAG_ENHANCED);
	assert_int_equal(frame.revision, 2);
	assert_int_equal(frame.pd_len, 4);
	assert_ptr_equal(frame.pd, octets(siw_request) + 20);
}

static void mpa_parse__reply_and_what_follows(void **state)
{
	static const char wire[] = REP_KEY "\xe0\x01\x00\x03xyzFPDU";
	struct mpa_frame frame;
	size_t used;

	(void)state;
	assert_int_equal(mpa_parse(octets(wire), sizeof(wire) - 1, &frame, &used), MPA_PARSE_OK);
	assert_int_equal(used, 23);
	assert_int_equal(frame.kind, MPA_REPLY);
	assert_int_equal(frame.flags, MPA_FLAG_MARKERS | MPA_FLAG_CRC | MPA_FLAG_REJECT);
	assert_int_equal(frame.revision, 1);
	assert_memory_equal(frame.pd, "xyz", 3);
}

/* RFC 5044 7.1.1: those that it reserves do no harm; core/startup judges those that an extension uses. */
static void mpa_parse__any_flags(void **state)
{
	char wire[] = REQ_KEY "\x00\x01\x00\x00";
	struct mpa_frame frame;
	size_t used;

	(void)state;
	for (int flags = 0; flags < 256; flags++) {
		wire[16] = (char)flags;
		assert_int_equal(mpa_parse(octets(wire), 20, &frame, &used), MPA_PARSE_OK);
		assert_int_equal(frame.flags, flags);
	}
}

/* Which revisions are spoken is not for the codec to say. */
static void mpa_parse__any_revision(void **state)
{
	char wire[] = REQ_KEY "\x40\x00\x00\x00";
	struct mpa_frame frame;
	size_t used;

	(void)state;
	for (int revision = 0; revision < 256; revision++) {
		wire[17] = (char)revision;
		assert_int_equal(mpa_parse(octets(wire), 20, &frame, &used), MPA_PARSE_OK);
		assert_int_equal(frame.revision, revision);
	}
}

static void mpa_parse__more_until_whole(void **state)
{
	struct mpa_frame frame = { .pd_len = 77 };
	size_t used;

	(void)state;
	for (size_t len = 0; len < 24; len++) {
		assert_int_equal(mpa_parse(octets(siw_request), len, &frame, &used),
				 MPA_PARSE_MORE);
		assert_int_equal(used, len < MPA_HDR_LEN ? MPA_HDR_LEN : 24);
	}
	assert_int_equal(frame.pd_len, 77);
}

/* A wrong octet is found as soon as it is there, at each place of either key. */
static void mpa_parse__bad_key(void **state)
{
	static const char *const good[] = { REQ_KEY, REP_KEY };
	struct mpa_frame frame;
	size_t used;

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		for (size_t at = 0; at < MPA_KEY_LEN; at++) {
			char key[MPA_KEY_LEN];

			memcpy(key, good[k], MPA_KEY_LEN);
			key[at] ^= 0x20;
			assert_int_equal(mpa_parse(octets(key), at, &frame, &used), MPA_PARSE_MORE);
			assert_int_equal(mpa_parse(octets(key), at + 1, &frame, &used),
					 MPA_PARSE_BAD_KEY);
		}
	}
}

static void mpa_parse__pd_length_limit(void **state)
{
	static char wire[MPA_FRAME_MAX + 1] = REQ_KEY "\x40\x01\x02\x00";
	struct mpa_frame frame;
	size_t used;

	(void)state;
	assert_int_equal(mpa_parse(octets(wire), MPA_FRAME_MAX, &frame, &used), MPA_PARSE_OK);
	assert_int_equal(used, MPA_FRAME_MAX);
	assert_int_equal(frame.pd_len, MPA_PD_MAX);
	wire[19] = 1;
	assert_int_equal(mpa_parse(octets(wire), MPA_HDR_LEN, &frame, &used), MPA_PARSE_BAD_LENGTH);
	wire[18] = (char)0xff;
	assert_int_equal(mpa_parse(octets(wire), sizeof(wire), &frame, &used),
			 MPA_PARSE_BAD_LENGTH);
}

static void mpa_build__siw_request(void **state)
{
	struct mpa_enhanced enh = { .ird = 1, .ord = 1 };
	uint8_t pd[MPA_ENH_LEN];
	struct mpa_frame frame = { MPA_REQUEST, MPA_FLAG_CRC | MPA_FLAG_ENHANCED, 2, sizeof(pd),
				   pd };
	uint8_t wire[MPA_FRAME_MAX];

	(void)state;
	mpa_enhanced_put(&enh, pd);
	assert_int_equal(mpa_build(&frame, wire), 24);
	assert_memory_equal(wire, siw_request, 24);
}

static void mpa_build__reply_without_private_data(void **state)
{
	struct mpa_frame frame = { .kind = MPA_REPLY, .flags = 0xf7, .revision = 1 };
	uint8_t wire[MPA_FRAME_MAX];

	(void)state;
	assert_int_equal(mpa_build(&frame, wire), MPA_HDR_LEN);
	assert_memory_equal(wire, REP_KEY "\xf7\x01\x00\x00", MPA_HDR_LEN);
}

/* RFC 6581 9: A, B and IRD; C, D and ORD. */
static void mpa_enhanced__octets(void **state)
{
	static const struct {
		uint8_t wire[MPA_ENH_LEN];
		struct mpa_enhanced enh;
	} cases[] = {
		{ { 0x80, 0x00, 0x00, 0x00 }, { .p2p = true } },
		{ { 0x40, 0x00, 0x00, 0x00 }, { .rtr = MPA_RTR_SEND } },
		{ { 0x00, 0x00, 0x80, 0x00 }, { .rtr = MPA_RTR_WRITE } },
		{ { 0x00, 0x00, 0x40, 0x00 }, { .rtr = MPA_RTR_READ } },
		{ { 0x3f, 0xff, 0x00, 0x00 }, { .ird = MPA_IRD_ORD_NONE } },
		{ { 0x00, 0x00, 0x3f, 0xfe }, { .ord = MPA_IRD_ORD_MAX } },
		{ { 0xc1, 0x02, 0xc3, 0x04 }, { true, 7, 0x0102, 0x0304 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mpa_enhanced got = mpa_enhanced_get(cases[i].wire);
		uint8_t wire[MPA_ENH_LEN];

		mpa_enhanced_put(&cases[i].enh, wire);
		assert_memory_equal(wire, cases[i].wire, MPA_ENH_LEN);
		assert_int_equal(got.p2p, cases[i].enh.p2p);
		assert_int_equal(got.rtr, cases[i].enh.rtr);
		assert_int_equal(got.ird, cases[i].enh.ird);
		assert_int_equal(got.ord, cases[i].enh.ord);
	}
}

/* A count too large for its 14 bits must not reach the flags. */
static void mpa_enhanced_put__counts_are_masked(void **state)
{
	struct mpa_enhanced enh = { .ird = 0xc001, .ord = 0xc002 };
	uint8_t wire[MPA_ENH_LEN];

	(void)state;
	mpa_enhanced_put(&enh, wire);
	assert_memory_equal(wire, "\x00\x01\x00\x02", MPA_ENH_LEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mpa_parse__siw_request),
		cmocka_unit_test(mpa_parse__reply_and_what_follows),
		cmocka_unit_test(mpa_parse__any_flags),
		cmocka_unit_test(mpa_parse__any_revision),
		cmocka_unit_test(mpa_parse__more_until_whole),
		cmocka_unit_test(mpa_parse__bad_key),
		cmocka_unit_test(mpa_parse__pd_length_limit),
		cmocka_unit_test(mpa_build__siw_request),
		cmocka_unit_test(mpa_build__reply_without_private_data),
		cmocka_unit_test(mpa_enhanced__octets),
		cmocka_unit_test(mpa_enhanced_put__counts_are_masked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
