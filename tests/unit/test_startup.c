// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MPA start-up: the frames to the octet, and what two ends agree on.
#include "core/qp.h"
#include "core/startup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static const struct aw_mpa_local usual = {
	.revision = 2,
	.crc = true,
	.p2p = true,
	.rtr = MPA_RTR_WRITE | MPA_RTR_READ | MPA_RTR_SEND,
	.ird = 16,
	.ord = 8,
};

static const struct aw_mpa_local plain = {
	.revision = 1,
	.crc = true,
	.ird = 4,
	.ord = 4,
};

static struct mpa_frame parse(const uint8_t *buf, size_t len)
{
	struct mpa_frame frame;
	size_t used;

	assert_int_equal(mpa_parse(buf, len, &frame, &used), MPA_PARSE_OK);
	assert_int_equal(used, len);
	return frame;
}

static struct aw_mpa_result ask(const struct aw_mpa_local *a, const struct aw_mpa_local *b,
				enum aw_setup expected)
{
	static uint8_t buf[MPA_FRAME_MAX];
	struct aw_mpa_result result = { .revision = 99 };
	struct mpa_frame frame = parse(buf, aw_mpa_request(a, "hello", 5, buf));

	assert_int_equal(aw_mpa_on_request(b, &frame, &result), expected);
	return result;
}

/* Initiator a, responder b; what a makes of b's Reply. */
static struct aw_mpa_result agree(const struct aw_mpa_local *a, const struct aw_mpa_local *b,
				  enum aw_setup expected)
{
	static uint8_t buf[MPA_FRAME_MAX];
	struct aw_mpa_result at_b = ask(a, b, AW_SETUP_OK), at_a = { .revision = 99 };
	struct mpa_frame frame = parse(buf, aw_mpa_reply(b, &at_b, false, "hi", 2, buf));

	assert_int_equal(aw_mpa_on_reply(a, &frame, &at_a), expected);
	return at_a;
}

static void aw_mpa_request__enhanced(void **state)
{
	static const uint8_t golden[] = { 'M', 'P', 'A',  ' ', 'I',  'D', ' ', 'R',  'e',
					  'q', ' ', 'F',  'r', 'a',  'm', 'e', 0x50, 2,
					  0,   6,   0xc0, 16,  0xc0, 8,	  'a', 'b' };
	uint8_t buf[MPA_FRAME_MAX];

	(void)state;
	assert_int_equal(aw_mpa_request(&usual, "ab", 2, buf), sizeof(golden));
	assert_memory_equal(buf, golden, sizeof(golden));
}

static void aw_mpa_request__plain(void **state)
{
	static const uint8_t golden[] = { 'M', 'P', 'A', ' ', 'I', 'D', ' ',  'R', 'e', 'q',
					  ' ', 'F', 'r', 'a', 'm', 'e', 0x40, 1,   0,	0 };
	uint8_t buf[MPA_FRAME_MAX];

	(void)state;
	assert_int_equal(aw_mpa_request(&plain, NULL, 0, buf), sizeof(golden));
	assert_memory_equal(buf, golden, sizeof(golden));
}

/* RFC 6581 10: no enhanced format when nothing enhanced is desired. */
static void aw_mpa_request__nothing_enhanced_wanted(void **state)
{
	struct aw_mpa_local local = {
		.revision = 2, .markers = true, .ird = MPA_IRD_ORD_NONE, .ord = MPA_IRD_ORD_NONE
	};
	uint8_t buf[MPA_FRAME_MAX];

	(void)state;
	assert_int_equal(aw_mpa_request(&local, NULL, 0, buf), MPA_HDR_LEN);
	assert_int_equal(buf[16], MPA_FLAG_MARKERS);
	assert_int_equal(buf[17], 1);
}

/* RFC 6581 9.2: A 0 means B, C and D 0. */
static void aw_mpa_request__client_server_has_no_rtr(void **state)
{
	struct aw_mpa_local local = usual;
	uint8_t buf[MPA_FRAME_MAX];

	(void)state;
	local.p2p = false;
	assert_int_equal(aw_mpa_request(&local, NULL, 0, buf), MPA_HDR_LEN + 4);
	assert_memory_equal(buf + 20, "\x00\x10\x00\x08", 4);
}

static void aw_mpa_pd_max__longest(void **state)
{
	static const uint8_t pd[512];
	uint8_t buf[MPA_FRAME_MAX];

	(void)state;
	assert_int_equal(aw_mpa_request(&usual, pd, aw_mpa_pd_max(true), buf), MPA_FRAME_MAX);
	assert_int_equal(aw_mpa_request(&plain, pd, aw_mpa_pd_max(false), buf), MPA_FRAME_MAX);
}

static void aw_mpa_on_request__plain_gets_plain(void **state)
{
	struct aw_mpa_result result = ask(&plain, &usual, AW_SETUP_OK);
	uint8_t buf[MPA_FRAME_MAX];

	(void)state;
	assert_false(result.enhanced);
	assert_int_equal(result.ird, 16);
	assert_int_equal(result.ord, 8);
	assert_int_equal(result.pd_len, 5);
	assert_memory_equal(result.pd, "hello", 5);
	assert_int_equal(aw_mpa_reply(&usual, &result, false, NULL, 0, buf), MPA_HDR_LEN);
	assert_int_equal(buf[16], MPA_FLAG_CRC);
	assert_int_equal(buf[17], 1);
}

static void aw_mpa_on_request__negotiates(void **state)
{
	struct aw_mpa_local b = usual;
	struct aw_mpa_result result;

	(void)state;
	b.ird = 100;
	b.ord = 100;
	result = ask(&usual, &b, AW_SETUP_OK);
	assert_true(result.enhanced);
	assert_int_equal(result.peer_ird, 16);
	assert_int_equal(result.peer_ord, 8);
	assert_int_equal(result.ird, 8);
	assert_int_equal(result.ord, 16);
	assert_memory_equal(result.pd, "hello", 5);
	b.ird = b.ord = 3;
	result = ask(&usual, &b, AW_SETUP_OK);
	assert_int_equal(result.ird, 3);
	assert_int_equal(result.ord, 3);
}

static void aw_mpa_on_request__revisions(void **state)
{
	struct mpa_frame frame = { .kind = MPA_REQUEST, .flags = MPA_FLAG_ENHANCED };
	struct aw_mpa_result result = { .revision = 99 };

	(void)state;
	frame.revision = 0;
	assert_int_equal(aw_mpa_on_request(&usual, &frame, &result), AW_SETUP_REVISION);
	frame.revision = 3;
	assert_int_equal(aw_mpa_on_request(&usual, &frame, &result), AW_SETUP_REVISION);
	frame.revision = 2;
	assert_int_equal(aw_mpa_on_request(&plain, &frame, &result), AW_SETUP_REVISION);
	assert_int_equal(aw_mpa_on_request(&usual, &frame, &result), AW_SETUP_SHORT_PD);
	assert_int_equal(result.revision, 99);
	/* In revision 1 the S bit is one of the reserved, unchecked ones; so is R in a Request. */
	frame.revision = 1;
	frame.flags |= MPA_FLAG_REJECT;
	assert_int_equal(aw_mpa_on_request(&usual, &frame, &result), AW_SETUP_OK);
	assert_false(result.enhanced);
	assert_false(result.rejected);
}

static void aw_mpa_on_request__wrong_kind(void **state)
{
	struct mpa_frame frame = { .kind = MPA_REPLY, .revision = 1 };
	struct aw_mpa_result result;

	(void)state;
	assert_int_equal(aw_mpa_on_request(&usual, &frame, &result), AW_SETUP_WRONG_KIND);
	frame.kind = MPA_REQUEST;
	assert_int_equal(aw_mpa_on_reply(&usual, &frame, &result), AW_SETUP_WRONG_KIND);
}

/* RFC 6581 9.1: 0x3fff is answered with 0x3fff, and leaves our values alone. */
static void aw_mpa_reply__no_negotiation(void **state)
{
	struct aw_mpa_local a = usual;
	struct aw_mpa_result result;
	uint8_t buf[MPA_FRAME_MAX];

	(void)state;
	a.ird = a.ord = MPA_IRD_ORD_NONE;
	result = ask(&a, &usual, AW_SETUP_OK);
	assert_int_equal(result.ird, 16);
	assert_int_equal(result.ord, 8);
	aw_mpa_reply(&usual, &result, false, NULL, 0, buf);
	assert_memory_equal(buf + 20, "\xff\xff\xff\xff", 4);
}

/* RFC 6581 9.2: nothing in common is answered with what we take; the initiator decides. */
static void aw_mpa_reply__rtr_offers(void **state)
{
	struct aw_mpa_local a = usual, b = usual;
	uint8_t buf[MPA_FRAME_MAX];
	struct aw_mpa_result result;

	(void)state;
	a.rtr = MPA_RTR_READ | MPA_RTR_WRITE;
	b.rtr = MPA_RTR_WRITE | MPA_RTR_SEND;
	assert_int_equal(ask(&a, &b, AW_SETUP_OK).rtr, MPA_RTR_WRITE);
	a.rtr = MPA_RTR_READ;
	result = ask(&a, &b, AW_SETUP_OK);
	assert_int_equal(result.rtr, MPA_RTR_WRITE | MPA_RTR_SEND);
	aw_mpa_reply(&b, &result, false, NULL, 0, buf);
	assert_memory_equal(buf + 20, "\xc0\x08\x80\x08", 4);
}

static void aw_mpa_on_request__read_rtr_needs_ird(void **state)
{
	struct aw_mpa_local a = usual, b = usual;

	(void)state;
	a.ord = 0;
	a.rtr = MPA_RTR_READ;
	assert_int_equal(ask(&a, &b, AW_SETUP_OK).ird, 1);
	b.ird = 0;
	assert_int_equal(ask(&a, &b, AW_SETUP_OK).rtr, MPA_RTR_WRITE | MPA_RTR_SEND);
	b.rtr = MPA_RTR_READ; /* there must be one: RFC 6581 9.2 */
	assert_int_equal(ask(&a, &b, AW_SETUP_OK).rtr, MPA_RTR_READ);
	assert_int_equal(ask(&a, &b, AW_SETUP_OK).ird, 1);
}

static void aw_mpa_reply__reject(void **state)
{
	struct aw_mpa_result at_b = ask(&usual, &usual, AW_SETUP_OK), at_a;
	uint8_t buf[MPA_FRAME_MAX];
	struct mpa_frame frame;

	(void)state;
	at_b.ord = 77; /* "the required ORD in the MPA Reject Frame", RFC 6581 9.1 */
	frame = parse(buf, aw_mpa_reply(&usual, &at_b, true, "no", 2, buf));
	assert_int_equal(aw_mpa_on_reply(&usual, &frame, &at_a), AW_SETUP_OK);
	assert_true(at_a.rejected);
	assert_int_equal(at_a.peer_ord, 77);
	assert_int_equal(at_a.pd_len, 2);
	assert_memory_equal(at_a.pd, "no", 2);
}

static void aw_mpa_on_reply__ord_and_ird(void **state)
{
	struct aw_mpa_local b = usual;
	struct aw_mpa_result result;

	(void)state;
	b.ird = 3;
	result = agree(&usual, &b, AW_SETUP_OK);
	assert_int_equal(result.ord, 3);
	assert_int_equal(result.ird, 16);
	assert_int_equal(result.peer_ird, 3);
	assert_int_equal(result.peer_ord, 8);
	assert_memory_equal(result.pd, "hi", 2);
}

/*
 * The ULPs agree on the depths: 0x3fff either way. A responder's ORD is at most the initiator's IRD
 * all the same (RFC 6581 9.1), and without peer-to-peer nothing enhanced is wanted (10).
 */
static void aw_mpa__depths_left_to_the_ulps(void **state)
{
	struct aw_mpa_local ulp = usual, shallow = usual;
	struct aw_mpa_result result;
	uint8_t buf[MPA_FRAME_MAX];
	struct mpa_enhanced enh;

	(void)state;
	ulp.ird_ord_ulp = true;
	shallow.ird = 3;
	result = ask(&ulp, &usual, AW_SETUP_OK);
	assert_int_equal(result.peer_ird, MPA_IRD_ORD_NONE);
	assert_int_equal(result.peer_ord, MPA_IRD_ORD_NONE);
	result = ask(&shallow, &ulp, AW_SETUP_OK);
	assert_int_equal(result.ird, ulp.ird);
	assert_int_equal(result.ord, 3);
	aw_mpa_reply(&ulp, &result, false, NULL, 0, buf);
	enh = mpa_enhanced_get(buf + MPA_HDR_LEN);
	assert_int_equal(enh.ird, MPA_IRD_ORD_NONE);
	assert_int_equal(enh.ord, MPA_IRD_ORD_NONE);
	ulp.p2p = false;
	assert_int_equal(aw_mpa_request(&ulp, NULL, 0, buf), MPA_HDR_LEN);
}

static enum aw_setup on_reply(const struct mpa_enhanced *enh, uint8_t revision,
			      struct aw_mpa_result *result)
{
	static uint8_t pd[MPA_ENH_LEN];
	struct mpa_frame frame = {
		.kind = MPA_REPLY,
		.flags = MPA_FLAG_ENHANCED,
		.revision = revision,
		.pd = pd,
		.pd_len = sizeof(pd),
	};

	mpa_enhanced_put(enh, pd);
	return aw_mpa_on_reply(&usual, &frame, result);
}

static void aw_mpa_on_reply__insufficient_ird(void **state)
{
	struct mpa_enhanced enh = { true, MPA_RTR_WRITE, 5, 16 };
	struct aw_mpa_result result = { .revision = 99 };

	(void)state;
	assert_int_equal(on_reply(&enh, 2, &result), AW_SETUP_OK);
	assert_int_equal(result.ord, 5);
	enh.ord = 17;
	assert_int_equal(on_reply(&enh, 2, &result), AW_SETUP_IRD);
	assert_int_equal(result.revision, 2); /* enough to start a stream for the Terminate */
	enh.ord = MPA_IRD_ORD_NONE;
	enh.ird = MPA_IRD_ORD_NONE;
	assert_int_equal(on_reply(&enh, 2, &result), AW_SETUP_OK);
	assert_int_equal(result.ird, 16);
	assert_int_equal(result.ord, 8);
}

static void aw_mpa_on_reply__rtr_choice(void **state)
{
	struct mpa_enhanced enh = { true, MPA_RTR_WRITE | MPA_RTR_READ | MPA_RTR_SEND, 5, 5 };
	struct aw_mpa_result result;

	(void)state;
	assert_int_equal(on_reply(&enh, 2, &result), AW_SETUP_OK);
	assert_int_equal(result.rtr, MPA_RTR_WRITE);
	enh.rtr = MPA_RTR_READ | MPA_RTR_SEND;
	assert_int_equal(on_reply(&enh, 2, &result), AW_SETUP_OK);
	assert_int_equal(result.rtr, MPA_RTR_READ);
	enh.ird = 0; /* no Read may be outstanding, so not even this one */
	assert_int_equal(on_reply(&enh, 2, &result), AW_SETUP_OK);
	assert_int_equal(result.rtr, MPA_RTR_SEND);
	enh.rtr = MPA_RTR_READ;
	assert_int_equal(on_reply(&enh, 2, &result), AW_SETUP_NO_RTR);
	enh.rtr = 0;
	assert_int_equal(on_reply(&enh, 2, &result), AW_SETUP_NO_RTR);
	/* A 0: client-server after all, and B, C, D are ignored. */
	enh.p2p = false;
	enh.rtr = 7;
	assert_int_equal(on_reply(&enh, 2, &result), AW_SETUP_OK);
	assert_false(result.p2p);
	assert_int_equal(result.rtr, 0);
}

static void aw_mpa_on_reply__p2p_not_asked_for(void **state)
{
	static const uint8_t pd[] = { 0xc0, 5, 0xc0, 5 };
	struct mpa_frame frame = {
		.kind = MPA_REPLY,
		.flags = MPA_FLAG_ENHANCED,
		.revision = 2,
		.pd = pd,
		.pd_len = sizeof(pd),
	};
	struct aw_mpa_local local = usual;
	struct aw_mpa_result result;

	(void)state;
	local.p2p = false;
	assert_int_equal(aw_mpa_on_reply(&local, &frame, &result), AW_SETUP_OK);
	assert_false(result.p2p);
}

static void aw_mpa_on_reply__revisions(void **state)
{
	struct mpa_enhanced enh = { 0 };
	struct aw_mpa_result result;

	(void)state;
	assert_int_equal(on_reply(&enh, 0, &result), AW_SETUP_REVISION);
	assert_int_equal(on_reply(&enh, 3, &result), AW_SETUP_REVISION);
	assert_int_equal(on_reply(&enh, 1, &result), AW_SETUP_OK);
	assert_false(result.enhanced);
	assert_false(result.p2p);
	assert_int_equal(result.pd_len, 4);
}

static void aw_mpa_on_reply__revision_above_ours(void **state)
{
	struct mpa_frame frame = { .kind = MPA_REPLY, .revision = 2 };
	struct aw_mpa_result result;

	(void)state;
	assert_int_equal(aw_mpa_on_reply(&plain, &frame, &result), AW_SETUP_REVISION);
}

/* RFC 5044 7.1.1: CRCs when either end wants them; markers as the receiving end wants. */
static void aw_mpa_on_reply__crc_and_markers(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		struct aw_mpa_local a = usual, b = usual;
		struct aw_mpa_result at_a, at_b;

		a.crc = i & 1;
		b.crc = i & 2;
		a.markers = i & 4;
		b.markers = i & 8;
		at_b = ask(&a, &b, AW_SETUP_OK);
		at_a = agree(&a, &b, AW_SETUP_OK);
		assert_int_equal(at_a.crc, a.crc || b.crc);
		assert_int_equal(at_b.crc, a.crc || b.crc);
		assert_int_equal(at_a.markers_tx, b.markers);
		assert_int_equal(at_a.markers_rx, a.markers);
		assert_int_equal(at_b.markers_tx, a.markers);
		assert_int_equal(at_b.markers_rx, b.markers);
	}
}

/* docs/extensions.md: offered by an enhanced Request, agreed to by an enhanced Reply. */
static void aw_mpa_extensions__when_both_want_them(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct aw_mpa_local a = usual, b = usual;
		uint8_t request[MPA_FRAME_MAX], reply[MPA_FRAME_MAX];
		struct aw_mpa_result at_b;

		a.extensions = i & 1;
		b.extensions = i & 2;
		aw_mpa_request(&a, NULL, 0, request);
		assert_int_equal(request[16], a.extensions ? 0x54 : 0x50);
		at_b = ask(&a, &b, AW_SETUP_OK);
		assert_int_equal(at_b.extensions, i == 3);
		aw_mpa_reply(&b, &at_b, false, NULL, 0, reply);
		assert_int_equal(reply[16], i == 3 ? 0x52 : 0x50);
		assert_int_equal(agree(&a, &b, AW_SETUP_OK).extensions, i == 3);
		aw_mpa_reply(&b, &at_b, true, NULL, 0, reply);
		assert_int_equal(reply[16], 0x70);
	}
}

/* What an initiator that offered makes of a Reply with these flags; of any other, nothing. */
static void aw_mpa_extensions__replies(void **state)
{
	static const struct {
		uint8_t flags, revision;
		bool agreed, large;
	} cases[] = {
		{ MPA_FLAG_ENHANCED | MPA_FLAG_EXT_AGREE, 2, true, false },
		{ MPA_FLAG_ENHANCED, 2, false, false },
		{ MPA_FLAG_ENHANCED | MPA_FLAG_LARGE_FPDUS | MPA_FLAG_EXT_AGREE, 2, true, true },
		{ MPA_FLAG_ENHANCED | MPA_FLAG_LARGE_FPDUS | MPA_FLAG_ANSWER, 2, false, true },
		{ MPA_FLAG_ENHANCED | MPA_FLAG_ANSWER, 2, false, false },
		/* The Request's flags sent back, as siw does; and a peer that sets all it can. */
		{ MPA_FLAG_ENHANCED | MPA_FLAG_EXT_OFFER, 2, false, false },
		{ MPA_FLAG_ENHANCED | MPA_FLAG_LARGE_FPDUS, 2, false, false },
		{ MPA_FLAG_ENHANCED | 0x0d, 2, false, false },
		{ MPA_FLAG_ENHANCED | 0x0f, 2, false, false },
		{ MPA_FLAG_ENHANCED | 0x0b | MPA_FLAG_REJECT, 2, false, false },
		{ 0x0b, 2, false, false },
		{ MPA_FLAG_ENHANCED | 0x0b, 1, false, false },
	};
	static const uint8_t pd[] = { 0xc0, 5, 0xc0, 5 };

	(void)state;
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mpa_frame frame = {
			.kind = MPA_REPLY,
			.flags = cases[i].flags,
			.revision = cases[i].revision,
			.pd = pd,
			.pd_len = sizeof(pd),
		};
		struct aw_mpa_local local = usual;
		struct aw_mpa_result result;

		assert_int_equal(aw_mpa_on_reply(&local, &frame, &result), AW_SETUP_OK);
		assert_false(result.extensions || aw_stream_agreed(&result, true).large_fpdus);
		local.extensions = true;
		local.large_fpdus = AW_LARGE_AGREED;
		assert_int_equal(aw_mpa_on_reply(&local, &frame, &result), AW_SETUP_OK);
		assert_int_equal(result.extensions, cases[i].agreed);
		assert_int_equal(aw_stream_agreed(&result, true).large_fpdus, cases[i].large);
		local.large_fpdus = AW_LARGE_ANY;
		assert_int_equal(aw_mpa_on_reply(&local, &frame, &result), AW_SETUP_OK);
		assert_true(aw_stream_agreed(&result, true).large_fpdus);
	}
}

/* docs/extensions.md: with the extensions, without them, and where only one end wants either. */
static void aw_mpa_large_fpdus__when_both_want_them(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		struct aw_mpa_local a = usual, b = usual;
		uint8_t request[MPA_FRAME_MAX], reply[MPA_FRAME_MAX];
		bool large = (i & 3) == 3, extended = i >> 2 == 3;
		unsigned int agreed = 0x50 | (extended ? 0x02 : 0);
		struct aw_mpa_result at_a, at_b;

		a.large_fpdus = i & 1 ? AW_LARGE_AGREED : AW_LARGE_OFF;
		b.large_fpdus = i & 2 ? AW_LARGE_ANY : AW_LARGE_OFF;
		a.extensions = i & 4;
		b.extensions = i & 8;
		aw_mpa_request(&a, NULL, 0, request);
		assert_int_equal(request[16], 0x50 | (i & 1 ? 0x08 : 0) | (i & 4 ? 0x04 : 0));
		at_b = ask(&a, &b, AW_SETUP_OK);
		assert_int_equal(at_b.large_fpdus, large);
		assert_int_equal(at_b.large_any, (i & 2) > 0);
		aw_mpa_reply(&b, &at_b, false, NULL, 0, reply);
		assert_int_equal(reply[16], agreed | (large ? (extended ? 0x08 : 0x09) : 0));
		at_a = agree(&a, &b, AW_SETUP_OK);
		assert_int_equal(at_a.large_fpdus, large);
		assert_int_equal(at_a.extensions, extended);
		assert_false(at_a.host || at_b.host || at_a.large_any);
		aw_mpa_reply(&b, &at_b, true, NULL, 0, reply);
		assert_int_equal(reply[16], 0x70);
	}
}

/* Without the enhanced format there is nothing that says what the bits mean. */
static void aw_mpa_extensions__not_without_the_enhanced_format(void **state)
{
	struct mpa_frame frame = { .kind = MPA_REQUEST, .revision = 1 };
	struct aw_mpa_local a = plain, b = usual;
	uint8_t buf[MPA_FRAME_MAX];
	struct aw_mpa_result result;

	(void)state;
	a.extensions = b.extensions = true;
	a.large_fpdus = b.large_fpdus = AW_LARGE_AGREED;
	aw_mpa_request(&a, NULL, 0, buf);
	assert_int_equal(buf[16], 0x40);
	frame.flags = MPA_FLAG_EXT_OFFER | MPA_FLAG_LARGE_FPDUS;
	assert_int_equal(aw_mpa_on_request(&b, &frame, &result), AW_SETUP_OK);
	assert_false(result.extensions || result.large_fpdus);
	frame.revision = 2;
	assert_int_equal(aw_mpa_on_request(&b, &frame, &result), AW_SETUP_OK);
	assert_false(result.extensions || result.large_fpdus);
	aw_mpa_reply(&b, &result, false, NULL, 0, buf);
	assert_int_equal(buf[16], 0x40);
}

static void aw_setup_text__each(void **state)
{
	(void)state;
	for (int s = AW_SETUP_OK; s <= AW_SETUP_IRD; s++)
		assert_string_not_equal(aw_setup_text((enum aw_setup)s), "unknown");
	assert_string_equal(aw_setup_text((enum aw_setup)99), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aw_mpa_request__enhanced),
		cmocka_unit_test(aw_mpa_request__plain),
		cmocka_unit_test(aw_mpa_request__nothing_enhanced_wanted),
		cmocka_unit_test(aw_mpa_request__client_server_has_no_rtr),
		cmocka_unit_test(aw_mpa_pd_max__longest),
		cmocka_unit_test(aw_mpa_on_request__plain_gets_plain),
		cmocka_unit_test(aw_mpa_on_request__negotiates),
		cmocka_unit_test(aw_mpa_on_request__revisions),
		cmocka_unit_test(aw_mpa_on_request__wrong_kind),
		cmocka_unit_test(aw_mpa_reply__no_negotiation),
		cmocka_unit_test(aw_mpa_reply__rtr_offers),
		cmocka_unit_test(aw_mpa_on_request__read_rtr_needs_ird),
		cmocka_unit_test(aw_mpa_reply__reject),
		cmocka_unit_test(aw_mpa_on_reply__ord_and_ird),
		cmocka_unit_test(aw_mpa__depths_left_to_the_ulps),
		cmocka_unit_test(aw_mpa_on_reply__insufficient_ird),
		cmocka_unit_test(aw_mpa_on_reply__rtr_choice),
		cmocka_unit_test(aw_mpa_on_reply__p2p_not_asked_for),
		cmocka_unit_test(aw_mpa_on_reply__revisions),
		cmocka_unit_test(aw_mpa_on_reply__revision_above_ours),
		cmocka_unit_test(aw_mpa_on_reply__crc_and_markers),
		cmocka_unit_test(aw_mpa_extensions__when_both_want_them),
		cmocka_unit_test(aw_mpa_extensions__replies),
		cmocka_unit_test(aw_mpa_extensions__not_without_the_enhanced_format),
		cmocka_unit_test(aw_mpa_large_fpdus__when_both_want_them),
		cmocka_unit_test(aw_setup_text__each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
