// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MPA Request and Reply frames (RFC 5044 7.1.1) and RFC 6581's data in front of the private
// data. Accepts every well-formed frame; judges no revision and no flag.
#include "wire/mpa.h"

#include "wire/octets.h"

#include <string.h>

enum {
	FLAGS = 16,
	REVISION = 17,
	PD_LENGTH = 18,
};

/* RFC 6581 9: two 16-bit words, each two flags and a 14-bit count. */
enum {
	WORD_HIGH = 0x8000, /* A and C */
	WORD_LOW = 0x4000, /* B and D */
	WORD_COUNT = 0x3fff,
};

static const uint8_t keys[][MPA_KEY_LEN + 1] = {
	[MPA_REQUEST] = "MPA ID Req Frame",
	[MPA_REPLY] = "MPA ID Rep Frame",
};

/* True when the len octets at buf, or as many of them as a key has, begin this kind of frame. */
static bool key_matches(const uint8_t *buf, size_t len, enum mpa_kind kind)
{
	return memcmp(buf, keys[kind], len < MPA_KEY_LEN ? len : MPA_KEY_LEN) == 0;
}

enum mpa_parse mpa_parse(const uint8_t *buf, size_t len, struct mpa_frame *frame, size_t *used)
{
	enum mpa_kind kind = MPA_REQUEST;
	uint16_t pd_len;

	if (len > 0 && !key_matches(buf, len, MPA_REQUEST)) {
		if (!key_matches(buf, len, MPA_REPLY))
			return MPA_PARSE_BAD_KEY;
		kind = MPA_REPLY;
	}
	if (len < MPA_HDR_LEN) {
		*used = MPA_HDR_LEN;
		return MPA_PARSE_MORE;
	}
	pd_len = get_be16(buf + PD_LENGTH);
	if (pd_len > MPA_PD_MAX)
		return MPA_PARSE_BAD_LENGTH;
	*used = MPA_HDR_LEN + (size_t)pd_len;
	if (len < *used)
		return MPA_PARSE_MORE;

	*frame = (struct mpa_frame){
		.kind = kind,
		.flags = buf[FLAGS],
		.revision = buf[REVISION],
		.pd_len = pd_len,
		.pd = buf + MPA_HDR_LEN,
	};
	return MPA_PARSE_OK;
}

size_t mpa_build(const struct mpa_frame *frame, uint8_t *buf)
{
	memcpy(buf, keys[frame->kind], MPA_KEY_LEN);
	buf[FLAGS] = frame->flags;
	buf[REVISION] = frame->revision;
	put_be16(buf + PD_LENGTH, frame->pd_len);
	if (frame->pd_len > 0)
		memcpy(buf + MPA_HDR_LEN, frame->pd, frame->pd_len);
	return MPA_HDR_LEN + (size_t)frame->pd_len;
}

static uint16_t enhanced_word(bool high, bool low, uint16_t count)
{
	return (uint16_t)((high ? WORD_HIGH : 0) | (low ? WORD_LOW : 0) | (count & WORD_COUNT));
}

void mpa_enhanced_put(const struct mpa_enhanced *enh, uint8_t *p)
{
	put_be16(p, enhanced_word(enh->p2p, enh->rtr & MPA_RTR_SEND, enh->ird));
	put_be16(p + 2, enhanced_word(enh->rtr & MPA_RTR_WRITE, enh->rtr & MPA_RTR_READ, enh->ord));
}

struct mpa_enhanced mpa_enhanced_get(const uint8_t *p)
{
	uint16_t first = get_be16(p);
	uint16_t second = get_be16(p + 2);

	return (struct mpa_enhanced){
		.p2p = first & WORD_HIGH,
		.rtr = (uint8_t)((first & WORD_LOW ? MPA_RTR_SEND : 0) |
				 (second & WORD_HIGH ? MPA_RTR_WRITE : 0) |
				 (second & WORD_LOW ? MPA_RTR_READ : 0)),
		.ird = first & WORD_COUNT,
		.ord = second & WORD_COUNT,
	};
}
