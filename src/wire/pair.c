// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Offsets within the private data, behind the octets of RFC 6581 9.
#include "wire/pair.h"

#include "wire/octets.h"

#include <string.h>

enum {
	MAGIC = 0, /* 4 octets */
	VERSION = 4,
	ANSWER = 5,
	TYPE = 6,
	ABILITIES = 7,
	INCARNATION = 8,
	SRC_QPN = 12, /* the upper octet of each is zero */
	DST_QPN = 16,
	SRC_GID = 20,
};

/* Of ABILITIES, whose other bits are zero and ignored. */
#define KEEPS 0x01
/* Of an XRC initiator: PAIR_RNR_RETRY_ENDLESS less its rnr_retry, so that one of an earlier version waits for ever. */
#define RNR_SHIFT 1
#define RNR_MASK 0x07

_Static_assert(SRC_GID + GID_LEN == PAIR_LEN, "the GID is the last");

static const uint8_t magic[4] = { 'a', 'w', 'R', 'C' };

void pair_put(const struct pair *pair, uint8_t *p)
{
	memcpy(p + MAGIC, magic, sizeof(magic));
	p[VERSION] = PAIR_VERSION;
	p[ANSWER] = (uint8_t)pair->answer;
	p[ABILITIES] = pair->keeps ? KEEPS : 0;
	if (pair->type == PAIR_XRC_INITIATOR)
		p[ABILITIES] |= (uint8_t)((PAIR_RNR_RETRY_ENDLESS - pair->rnr_retry) << RNR_SHIFT);
	p[TYPE] = pair->type;
	put_be32(p + INCARNATION, pair->incarnation);
	put_be32(p + SRC_QPN, pair->src_qpn);
	put_be32(p + DST_QPN, pair->dst_qpn);
	memcpy(p + SRC_GID, pair->src_gid, GID_LEN);
}

bool pair_get(const uint8_t *p, size_t len, struct pair *pair)
{
	if (len < PAIR_LEN || memcmp(p + MAGIC, magic, sizeof(magic)) != 0 ||
	    p[VERSION] != PAIR_VERSION || p[ANSWER] > PAIR_OTHER_TYPE ||
	    get_be32(p + SRC_QPN) > QPN_MAX || get_be32(p + DST_QPN) > QPN_MAX)
		return false;
	*pair = (struct pair){
		.answer = (enum pair_answer)p[ANSWER],
		.type = p[TYPE],
		.keeps = p[ABILITIES] & KEEPS,
		.incarnation = get_be32(p + INCARNATION),
		.src_qpn = get_be32(p + SRC_QPN),
		.dst_qpn = get_be32(p + DST_QPN),
	};
	if (pair->type == PAIR_XRC_INITIATOR)
		pair->rnr_retry = PAIR_RNR_RETRY_ENDLESS - (p[ABILITIES] >> RNR_SHIFT & RNR_MASK);
	memcpy(pair->src_gid, p + SRC_GID, GID_LEN);
	return true;
}
