// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MPA start-up frames: Request and Reply, revisions 0 to 2 (RFC 5044 7.1.1, RFC 6581 4 and 9).
// Octets to values and back; core/startup judges the values.
#ifndef WIRE_MPA_H
#define WIRE_MPA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MPA_KEY_LEN 16
#define MPA_HDR_LEN 20
#define MPA_PD_MAX 512 /* RFC 5044 7.1.1: a longer PD_Length is invalid */
#define MPA_ENH_LEN 4
#define MPA_FRAME_MAX (MPA_HDR_LEN + MPA_PD_MAX)
#define MPA_IRD_ORD_MAX 0x3ffe
#define MPA_IRD_ORD_NONE 0x3fff /* RFC 6581 9.1: no automatic negotiation */

enum mpa_kind {
	MPA_REQUEST,
	MPA_REPLY,
};

enum mpa_flag {
	MPA_FLAG_MARKERS = 0x80, /* M: send markers to me */
	MPA_FLAG_CRC = 0x40, /* C: I want CRCs checked */
	MPA_FLAG_REJECT = 0x20, /* R: replies only */
	MPA_FLAG_ENHANCED = 0x10, /* S: RFC 6581 data leads the private data */
	/* Reserved by the RFCs, and not checked by other receivers: docs/extensions.md. */
	MPA_FLAG_LARGE_FPDUS = 0x08, /* FPDUs longer than a TCP segment are welcome */
	MPA_FLAG_EXT_OFFER = 0x04, /* requests only */
	MPA_FLAG_EXT_AGREE = 0x02, /* replies only, with the one above clear */
	/*
	 * Atomic Write and Flush: offered beside EXT_OFFER; agreed to, and the extensions with them, in
	 * the place of EXT_AGREE. A Request's flags sent back have both bits. An initiator that offers them by rdma_cm takes waits.
	 * One that offers TLS as well leaves EXT_OFFER out.
	 */
	MPA_FLAG_PLACEMENT_OFFER = 0x02, /* requests only */
	MPA_FLAG_PLACEMENT_AGREE = 0x04, /* replies only */
	MPA_FLAG_HOST = 0x01, /* offer, with EXT_OFFER; agreed, with EXT_AGREE: docs/host-path.md */
	/* In a Reply with LARGE_FPDUS that does not agree to the extensions: it is no Request's flags sent back. */
	MPA_FLAG_ANSWER = MPA_FLAG_HOST,
};

enum mpa_rtr {
	MPA_RTR_SEND = 1, /* B */
	MPA_RTR_WRITE = 2, /* C */
	MPA_RTR_READ = 4, /* D */
};

/* RFC 6581 9: the four octets before the ULP's private data. */
struct mpa_enhanced {
	bool p2p; /* A */
	uint8_t rtr; /* mask of enum mpa_rtr */
	uint16_t ird; /* 14 bits */
	uint16_t ord; /* 14 bits */
};

struct mpa_frame {
	enum mpa_kind kind;
	uint8_t flags; /* enum mpa_flag */
	uint8_t revision;
	uint16_t pd_len; /* private data, RFC 6581's octets included */
	const uint8_t *pd; /* borrowed from the parsed octets */
};

enum mpa_parse {
	MPA_PARSE_OK,
	MPA_PARSE_MORE, /* a valid beginning; more octets are due */
	MPA_PARSE_BAD_KEY, /* neither key; found at the first octet that differs */
	MPA_PARSE_BAD_LENGTH, /* PD_Length over 512 */
};

/*
 * Reads one frame at the start of buf. On OK fills *frame and *used (the frame's octets). On MORE
 * *used is the number of octets wanted in all, as far as it is known yet. *frame is written only on
 * OK.
 */
enum mpa_parse mpa_parse(const uint8_t *buf, size_t len, struct mpa_frame *frame, size_t *used);

/* Writes frame to buf (MPA_FRAME_MAX octets suffice) and returns its length. pd_len <= 512. */
size_t mpa_build(const struct mpa_frame *frame, uint8_t *buf);

/* The 4 octets of RFC 6581 9. */
void mpa_enhanced_put(const struct mpa_enhanced *enh, uint8_t *p);
struct mpa_enhanced mpa_enhanced_get(const uint8_t *p);

#endif
