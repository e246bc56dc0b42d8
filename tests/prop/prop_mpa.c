// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MPA start-up frames: any octets, shown to the parser prefix by prefix, give MORE and then one
// verdict that further octets do not change; what was built is parsed back.
#include "prop/prop.h"

#include "wire/mpa.h"

#include <string.h>

/* The parser sees each prefix in memory of exactly its size. */
static enum mpa_parse parse_prefix(const uint8_t *buf, size_t len, struct mpa_frame *frame,
				   size_t *used)
{
	uint8_t *exact = malloc(len);
	enum mpa_parse verdict;

	if (len > 0)
		memcpy(exact, buf, len);
	verdict = mpa_parse(exact, len, frame, used);
	if (verdict == MPA_PARSE_OK) {
		PROP(frame->pd == exact + MPA_HDR_LEN);
		frame->pd = buf + MPA_HDR_LEN;
	}
	free(exact);
	return verdict;
}

static void same_frame(const struct mpa_frame *a, const struct mpa_frame *b)
{
	PROP(a->kind == b->kind && a->flags == b->flags && a->revision == b->revision);
	PROP(a->pd_len == b->pd_len && memcmp(a->pd, b->pd, a->pd_len) == 0);
}

static void verdict_is_final(const uint8_t *buf, size_t len)
{
	struct mpa_frame whole, frame;
	size_t whole_used = 0, used = 0;
	enum mpa_parse verdict = mpa_parse(buf, len, &whole, &whole_used);
	bool decided = false;

	PROP(verdict != MPA_PARSE_MORE || whole_used > len);
	PROP(verdict != MPA_PARSE_OK || whole_used <= len);
	for (size_t n = 0; n <= len; n++) {
		enum mpa_parse early = parse_prefix(buf, n, &frame, &used);

		if (early == MPA_PARSE_MORE) {
			PROP(!decided);
			PROP(used > n && used <= MPA_FRAME_MAX);
			continue;
		}
		decided = true;
		PROP(early == verdict);
		if (early == MPA_PARSE_OK) {
			PROP(used == whole_used && n >= used);
			same_frame(&frame, &whole);
		}
	}
	PROP(decided == (verdict != MPA_PARSE_MORE));
}

/* Octets that mostly begin like a frame; chance alone would never find a key. */
static void octets_near_a_frame(struct bytes *b)
{
	static const char *const keys[] = { "MPA ID Req Frame", "MPA ID Rep Frame" };
	uint8_t like = bytes_u8(b);
	uint8_t wrong_at = bytes_u8(b);
	size_t len;
	uint8_t *buf = bytes_rest(b, MPA_FRAME_MAX + 16, &len);

	memcpy(buf, keys[like & 1], len < MPA_KEY_LEN ? len : MPA_KEY_LEN);
	if (wrong_at < len && wrong_at < MPA_KEY_LEN)
		buf[wrong_at] ^= like;
	if (len > 18 && like & 2)
		buf[18] &= 3;
	verdict_is_final(buf, len);
	free(buf);
}

static void any_octets(struct bytes *b)
{
	size_t len;
	uint8_t *buf = bytes_rest(b, MPA_FRAME_MAX + 16, &len);

	verdict_is_final(buf, len);
	free(buf);
}

static void frames_survive(struct bytes *b)
{
	uint8_t wire[MPA_FRAME_MAX], pd[MPA_PD_MAX];
	struct mpa_frame frame = {
		.kind = bytes_bool(b) ? MPA_REPLY : MPA_REQUEST,
		.flags = bytes_u8(b) & 0xf0,
		.revision = bytes_u8(b),
		.pd_len = (uint16_t)bytes_range(b, 0, MPA_PD_MAX),
		.pd = pd,
	};
	struct mpa_frame got;
	size_t len, used;

	bytes_take(b, pd, sizeof(pd));
	len = mpa_build(&frame, wire);
	PROP(len == MPA_HDR_LEN + (size_t)frame.pd_len);
	PROP(mpa_parse(wire, len, &got, &used) == MPA_PARSE_OK);
	PROP(used == len);
	same_frame(&got, &frame);
	verdict_is_final(wire, len);
}

static void enhanced_survives(struct bytes *b)
{
	uint8_t wire[MPA_ENH_LEN], again[MPA_ENH_LEN];
	struct mpa_enhanced enh;

	bytes_take(b, wire, sizeof(wire));
	enh = mpa_enhanced_get(wire);
	PROP(enh.ird <= MPA_IRD_ORD_NONE && enh.ord <= MPA_IRD_ORD_NONE);
	mpa_enhanced_put(&enh, again);
	PROP(memcmp(wire, again, sizeof(wire)) == 0);
}

void prop_run(struct bytes *b)
{
	static void (*const props[])(struct bytes *) = {
		octets_near_a_frame,
		any_octets,
		frames_survive,
		enhanced_survives,
	};

	props[bytes_u8(b) % (sizeof(props) / sizeof(props[0]))](b);
}
