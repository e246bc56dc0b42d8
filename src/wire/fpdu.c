// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FPDU sizes and markers (RFC 5044 4.1 to 4.5). FPDUs are whole multiples of four octets and so
// are marker positions: no marker ever stands inside a length or a CRC field.
#include "wire/fpdu.h"

#include "wire/octets.h"

#include <string.h>

enum {
	PAYLOAD_EVERY = FPDU_MARKER_EVERY - FPDU_MARKER_LEN,
	OVERHEAD = FPDU_LEN_FIELD + FPDU_CRC_LEN,
	MULPDU_MIN = 128, /* RFC 5044 4.5 */
	MARKER_FPDUPTR = 2,
	FPDUPTR_MASK = 0xfffc, /* RFC 5044 4.2: a receiver takes the low two bits as zero */
};

/* Octets from pos to the next marker; 0 when it stands at pos itself. */
static size_t marker_distance(uint32_t pos)
{
	return (0 - pos) & (FPDU_MARKER_EVERY - 1);
}

size_t fpdu_marked_size(uint32_t pos, size_t n)
{
	size_t first = marker_distance(pos);

	if (n <= first)
		return n;
	return n + FPDU_MARKER_LEN * (1 + (n - first - 1) / PAYLOAD_EVERY);
}

size_t fpdu_mulpdu(size_t emss, int markers_on)
{
	size_t cost = OVERHEAD + emss % 4;

	if (markers_on)
		cost += FPDU_MARKER_LEN * (emss / FPDU_MARKER_EVERY + !!(emss % FPDU_MARKER_EVERY));
	if (emss < MULPDU_MIN + cost)
		return MULPDU_MIN;
	return emss - cost < FPDU_MULPDU_MAX ? emss - cost : FPDU_MULPDU_MAX;
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void put_marker(uint8_t *p, size_t fpduptr)
{
	put_be16(p, 0);
	put_be16(p + MARKER_FPDUPTR, (uint16_t)fpduptr);
}

size_t fpdu_insert_markers(uint8_t *dst, const uint8_t *src, size_t n, uint32_t pos)
{
	size_t start = fpdu_len_at(pos);
	size_t chunk = min_size(marker_distance(pos), n);
	size_t out = chunk;

	memcpy(dst, src, chunk);
	for (size_t in = chunk; in < n; in += chunk) {
		put_marker(dst + out, out > start ? out - start : 0);
		out += FPDU_MARKER_LEN;
		chunk = min_size(PAYLOAD_EVERY, n - in);
		memcpy(dst + out, src + in, chunk);
		out += chunk;
	}
	return out;
}

static int marker_is_wrong(const uint8_t *p, size_t fpduptr)
{
	return (get_be16(p + MARKER_FPDUPTR) & FPDUPTR_MASK) != (fpduptr & FPDUPTR_MASK);
}

size_t fpdu_remove_markers(uint8_t *buf, size_t n, uint32_t pos, int *bad)
{
	size_t start = fpdu_len_at(pos);
	size_t in = min_size(marker_distance(pos), n);
	size_t out = in;
	int wrong = 0;

	while (n - in >= FPDU_MARKER_LEN) {
		size_t chunk = min_size(PAYLOAD_EVERY, n - in - FPDU_MARKER_LEN);

		wrong |= marker_is_wrong(buf + in, in > start ? in - start : 0);
		in += FPDU_MARKER_LEN;
		memmove(buf + out, buf + in, chunk);
		in += chunk;
		out += chunk;
	}
	*bad = wrong;
	return out;
}
