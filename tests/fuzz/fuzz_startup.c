// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Start-up frames: whatever arrives is parsed within its octets, comes to the same result however
// it is cut, and what both ends then hold is within what they wanted.
#include "fuzz.h"

#include "core/startup.h"

#include <string.h>

static struct aw_mpa_local draw_local(struct bytes *b)
{
	uint8_t bits = bytes_u8(b);
	uint16_t ird = bits & 0x80 ? bytes_u16(b) & MPA_IRD_ORD_NONE : bytes_u8(b);

	return (struct aw_mpa_local){
		.revision = (uint8_t)(1 + (bits & 1)),
		.markers = bits & 2,
		.crc = bits & 4,
		.p2p = (bits & 8) && (bits & 1),
		.rtr = (bits >> 4 & 7) ? bits >> 4 & 7 : MPA_RTR_WRITE,
		.ird = ird,
		.ord = bits & 0x80 ? bytes_u16(b) & MPA_IRD_ORD_NONE : bytes_u8(b),
		.extensions = ird & 1,
		.large_fpdus = (enum aw_large_fpdus)(ird >> 3 & 3) % 3,
		.waits = ird & 2,
		.placement = ird & 2,
		.tls = ird & 32,
		.ird_ord_ulp = (ird & 6) == 6,
	};
}

/* Every beginning of a frame wants more, or is wrong in the same way. */
static void check_prefixes(const uint8_t *buf, size_t len, enum mpa_parse whole, size_t used)
{
	for (size_t n = 0; n < len && n < 600; n++) {
		struct mpa_frame frame;
		size_t wanted = 0;
		uint8_t *exact = malloc(n);
		enum mpa_parse parse;

		if (n && exact)
			memcpy(exact, buf, n);
		parse = mpa_parse(exact, n, &frame, &wanted);
		free(exact);
		if (parse == MPA_PARSE_MORE)
			FUZZ_CHECK(wanted > n && (whole != MPA_PARSE_OK || wanted <= used));
		else
			FUZZ_CHECK(parse == whole);
		FUZZ_CHECK(parse != MPA_PARSE_OK || n >= used);
		FUZZ_CHECK(parse != MPA_PARSE_MORE || whole != MPA_PARSE_OK || n < used);
	}
}

static bool single_bit(uint8_t mask)
{
	return mask && !(mask & (mask - 1));
}

static void check_initiator(const struct aw_mpa_local *local, const struct mpa_frame *frame)
{
	struct aw_mpa_result r;

	memset(&r, 0, sizeof(r));
	FUZZ_CHECK(!aw_mpa_is_wait(local, frame) ||
		   (local->waits && local->extensions && frame->kind == MPA_REPLY));
	FUZZ_CHECK(!aw_mpa_is_start_tls(local, frame) ||
		   (local->tls && local->placement && frame->kind == MPA_REPLY));
	if (aw_mpa_on_reply(local, frame, &r) != AW_SETUP_OK || r.rejected)
		return;
	FUZZ_CHECK(frame->kind == MPA_REPLY);
	FUZZ_CHECK(!r.extensions || (local->extensions && r.enhanced));
	FUZZ_CHECK(!r.large_fpdus || (local->large_fpdus && r.enhanced));
	FUZZ_CHECK(!r.placement || (local->placement && r.extensions));
	FUZZ_CHECK(!r.p2p || (single_bit(r.rtr) && (r.rtr & local->rtr)));
	FUZZ_CHECK(!local->crc || r.crc);
	FUZZ_CHECK(r.markers_rx == local->markers);
	FUZZ_CHECK(!r.p2p || r.rtr != MPA_RTR_READ || r.ord > 0);
	/* RFC 6581 9.1: an RTR that is a Read has an entry even where the ULP wants none. */
	FUZZ_CHECK(r.ord <= local->ord || local->ord == MPA_IRD_ORD_NONE ||
		   (r.p2p && r.rtr == MPA_RTR_READ && r.ord == 1));
	FUZZ_CHECK(r.pd_len <= frame->pd_len);
}

/* The Reply to what was accepted is one that its initiator can read. */
static void check_answer(struct bytes *b, const struct aw_mpa_local *local,
			 const struct aw_mpa_result *result)
{
	uint8_t pd[MPA_PD_MAX] = { 0 }, buf[MPA_FRAME_MAX];
	struct mpa_frame reply;
	size_t pd_len = bytes_range(b, 0, aw_mpa_pd_max(result->enhanced));
	size_t used = 0;
	size_t len = aw_mpa_reply(local, result, bytes_u8(b) == 1, pd, pd_len, buf);

	FUZZ_CHECK(len <= sizeof(buf));
	FUZZ_CHECK(mpa_parse(buf, len, &reply, &used) == MPA_PARSE_OK && used == len);
	FUZZ_CHECK(reply.kind == MPA_REPLY && reply.revision == result->revision);
}

static void check_responder(struct bytes *b, const struct aw_mpa_local *local,
			    const struct mpa_frame *frame)
{
	struct aw_mpa_result r;

	memset(&r, 0, sizeof(r));
	if (aw_mpa_on_request(local, frame, &r) != AW_SETUP_OK)
		return;
	FUZZ_CHECK(frame->kind == MPA_REQUEST && r.revision <= local->revision);
	FUZZ_CHECK(!r.extensions || (local->extensions && r.enhanced));
	FUZZ_CHECK(!r.large_fpdus || (local->large_fpdus && r.enhanced));
	FUZZ_CHECK(!r.waits || (r.extensions && local->waits));
	FUZZ_CHECK(!r.tls || (r.placement && local->tls));
	FUZZ_CHECK(!r.p2p || (r.rtr <= 7 && r.rtr));
	FUZZ_CHECK(!local->crc || r.crc);
	FUZZ_CHECK(r.ird <= local->ird || (r.rtr & MPA_RTR_READ));
	FUZZ_CHECK(r.ord <= local->ord);
	FUZZ_CHECK(r.pd_len <= frame->pd_len);
	check_answer(b, local, &r);
}

/* Two honest ends: what the one asks, the other answers, and both hold the same. */
static void check_pair(struct bytes *b)
{
	struct aw_mpa_local first = draw_local(b), second = draw_local(b);
	struct aw_mpa_result near, far;
	uint8_t buf[MPA_FRAME_MAX];
	struct mpa_frame frame;
	size_t used, len;

	second.p2p = false;
	len = aw_mpa_request(&first, NULL, 0, buf);
	FUZZ_CHECK(mpa_parse(buf, len, &frame, &used) == MPA_PARSE_OK && used == len);
	if (aw_mpa_on_request(&second, &frame, &far) != AW_SETUP_OK)
		return;
	FUZZ_CHECK(far.waits == (far.placement && first.waits && second.waits));
	len = aw_mpa_wait(buf);
	FUZZ_CHECK(mpa_parse(buf, len, &frame, &used) == MPA_PARSE_OK && used == len);
	FUZZ_CHECK(!far.waits || aw_mpa_is_wait(&first, &frame));
	FUZZ_CHECK(far.tls == (far.placement && first.tls && second.tls));
	len = aw_mpa_start_tls(buf);
	FUZZ_CHECK(mpa_parse(buf, len, &frame, &used) == MPA_PARSE_OK && used == len);
	FUZZ_CHECK(!far.tls || aw_mpa_is_start_tls(&first, &frame));
	FUZZ_CHECK(!aw_mpa_is_wait(&first, &frame));
	len = aw_mpa_reply(&second, &far, false, NULL, 0, buf);
	FUZZ_CHECK(mpa_parse(buf, len, &frame, &used) == MPA_PARSE_OK && used == len);
	FUZZ_CHECK(!aw_mpa_is_wait(&first, &frame) && !aw_mpa_is_start_tls(&first, &frame));
	if (aw_mpa_on_reply(&first, &frame, &near) != AW_SETUP_OK)
		return;
	FUZZ_CHECK(near.extensions == far.extensions);
	FUZZ_CHECK(near.large_fpdus == far.large_fpdus);
	FUZZ_CHECK(near.placement == far.placement);
	FUZZ_CHECK(near.placement == (near.extensions && first.placement && second.placement));
	/* An offer of TLS, which has a bit fewer, is agreed to with placement alone. */
	if (!first.tls || !first.placement || second.placement)
		FUZZ_CHECK(near.extensions ==
			   (near.enhanced && first.extensions && second.extensions));
	FUZZ_CHECK(near.crc == far.crc && near.p2p == far.p2p && !near.rejected);
	FUZZ_CHECK(near.markers_tx == far.markers_rx && near.markers_rx == far.markers_tx);
	FUZZ_CHECK(!near.p2p || (near.rtr & far.rtr));
	if (near.enhanced && !first.ird_ord_ulp && !second.ird_ord_ulp)
		FUZZ_CHECK(near.ord <= far.ird || second.ird == MPA_IRD_ORD_NONE ||
			   first.ord == MPA_IRD_ORD_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct bytes b = { data, len };
	struct aw_mpa_local local = draw_local(&b);
	struct bytes rest;
	struct mpa_frame frame;
	enum mpa_parse parse;
	size_t used = 0, n;
	uint8_t *buf;

	check_pair(&b);
	rest = b;
	buf = bytes_rest(&b, 2048, &n);
	parse = mpa_parse(buf, n, &frame, &used);
	check_prefixes(buf, n, parse, used);
	if (parse == MPA_PARSE_OK) {
		FUZZ_CHECK(used <= n && frame.pd_len <= MPA_PD_MAX);
		FUZZ_CHECK(used == (size_t)MPA_HDR_LEN + frame.pd_len);
		check_initiator(&local, &frame);
		check_responder(&rest, &local, &frame);
	}
	free(buf);
	return 0;
}
