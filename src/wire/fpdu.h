// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FPDU framing: lengths, pad, CRC field and markers (RFC 5044 4.1 to 4.4). Stream positions are
// counted per direction from the first octet of full operation, modulo 2^32; FPDUs start at
// multiples of four.
#ifndef WIRE_FPDU_H
#define WIRE_FPDU_H

#include "wire/octets.h"

#include <stddef.h>
#include <stdint.h>

#define FPDU_LEN_FIELD 2
#define FPDU_CRC_LEN 4
#define FPDU_ULPDU_MAX 65535 /* the most that a peer's length field can express */
#define FPDU_MULPDU_MAX 64768 /* RFC 5044 3: the longest that may be sent */
/* With markers: of a longer one the last marker could be too far for its 16-bit FPDUPTR. */
#define FPDU_ULPDU_MARKED_MAX 65022
#define FPDU_MARKER_LEN 4
#define FPDU_MARKER_EVERY 512
/* 2 + 65535 + 3 + 4 = 65544 octets and 130 markers of 4, one for each 508 octets begun. */
#define FPDU_MAX 66064

/* Pad octets behind a ULPDU of len octets: 0 to 3. */
static inline size_t fpdu_pad(size_t ulpdu_len)
{
	return (0 - (ulpdu_len + FPDU_LEN_FIELD)) & 3;
}

/* Octets of an FPDU without markers. */
static inline size_t fpdu_size(size_t ulpdu_len)
{
	return FPDU_LEN_FIELD + ulpdu_len + fpdu_pad(ulpdu_len) + FPDU_CRC_LEN;
}

/*
 * With markers on, the place of the length field of an FPDU that starts at stream position pos:
 * behind the marker if one is due there. The CRC field is always the last four octets, and the CRC
 * covers everything before it, that first marker included (RFC 5044 4.4).
 */
static inline size_t fpdu_len_at(uint32_t pos)
{
	return pos % FPDU_MARKER_EVERY ? 0 : FPDU_MARKER_LEN;
}

/*
 * Octets on the wire of n payload octets that start at stream position pos, with markers: a
 * marker stands at every position that is a multiple of 512, the first at position 0. A marker
 * due exactly behind the last octet belongs to what follows and is not counted.
 */
size_t fpdu_marked_size(uint32_t pos, size_t n);

/*
 * Octets on the wire of the FPDU whose first len octets are at buf, of a stream that is marked or not; pos: its position.
 * 0 when not even its length is there.
 */
static inline size_t fpdu_wire_size(const uint8_t *buf, size_t len, uint32_t pos, int marked)
{
	size_t at = marked ? fpdu_len_at(pos) : 0;
	size_t size;

	if (len < at + FPDU_LEN_FIELD)
		return 0;
	size = fpdu_size(get_be16(buf + at));
	return marked ? fpdu_marked_size(pos, size) : size;
}

/*
 * Largest ULPDU such that its FPDU fits emss octets, markers counted at their worst place when
 * markers_on (RFC 5044 4.5 MULPDU; its formula may stay 4 octets below). At least 128, at most
 * FPDU_MULPDU_MAX.
 */
size_t fpdu_mulpdu(size_t emss, int markers_on);

/*
 * Copies the FPDU at src (n octets without markers; its CRC field is whatever is there) to dst
 * with markers put in for stream position pos; returns octets written. dst must not overlap.
 * Every marker's FPDUPTR counts back to the FPDU's length field; one that stands before it has 0.
 */
size_t fpdu_insert_markers(uint8_t *dst, const uint8_t *src, size_t n, uint32_t pos);

/*
 * Takes the markers out of n wire octets that start at stream position pos with the beginning of
 * an FPDU (or the marker before it), in place; returns the octets left. *bad is set: nonzero if a
 * marker's FPDUPTR does not point at the FPDU's start, else 0.
 */
size_t fpdu_remove_markers(uint8_t *buf, size_t n, uint32_t pos, int *bad);

#endif
