// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FPDU markers against a model that walks the stream octet by octet: a stream of FPDUs from any
// position, what insertion writes, what removal leaves, and every marker that was damaged.
#include "prop/prop.h"

#include "wire/fpdu.h"
#include "wire/octets.h"

#include <string.h>

#define FPDUS_MAX 8

/* The model: places octet after octet, and a marker wherever the position asks for one. */
static size_t model_insert(uint8_t *dst, const uint8_t *src, size_t n, uint32_t pos)
{
	size_t out = 0;
	size_t len_at = 0;
	bool begun = false;

	for (size_t in = 0; in < n; out++) {
		if ((pos + out) % 512 == 0) {
			size_t ptr = begun ? out - len_at : 0;

			memcpy(dst + out, (uint8_t[]){ 0, 0, ptr >> 8 & 0xff, ptr & 0xff }, 4);
			out += 3;
			continue;
		}
		if (!begun)
			len_at = out;
		begun = true;
		dst[out] = src[in++];
	}
	return out;
}

/* Damages one of the markers within size octets, if there is one; true if it was. */
static bool damage_marker(uint8_t *wire, size_t size, uint32_t pos, struct bytes *b)
{
	size_t first = -pos % 512;
	size_t count = size > first ? (size - first + 511) / 512 : 0;
	uint8_t bit = bytes_u8(b) % 14;
	size_t at;

	if (count == 0)
		return false;
	at = first + 512 * bytes_range(b, 0, count - 1);
	put_be16(wire + at + 2, get_be16(wire + at + 2) ^ (uint16_t)(4 << bit));
	return true;
}

/* A ULPDU length; small, around a marker interval or a segment, or anything. */
static size_t draw_ulpdu_len(struct bytes *b)
{
	switch (bytes_u8(b) % 8) {
	case 0:
		return bytes_range(b, 0, FPDU_ULPDU_MARKED_MAX);
	case 1:
		return FPDU_ULPDU_MARKED_MAX - bytes_u8(b) % 8;
	case 2:
	case 3:
		return bytes_range(b, 480, 540);
	default:
		return bytes_range(b, 0, 2100);
	}
}

static uint32_t one_fpdu(struct bytes *b, uint32_t pos)
{
	size_t n = fpdu_size(draw_ulpdu_len(b));
	size_t size = fpdu_marked_size(pos, n);
	uint8_t *fpdu = malloc(n), *wire = malloc(size), *model = malloc(size + 4);
	uint8_t mix = bytes_u8(b);
	int bad = -1;

	for (size_t i = 0; i < n; i++)
		fpdu[i] = (uint8_t)(i * 167 >> 3 ^ mix);
	put_be16(fpdu, (uint16_t)(n - 8));

	PROP(model_insert(model, fpdu, n, pos) == size);
	PROP(fpdu_insert_markers(wire, fpdu, n, pos) == size);
	PROP(memcmp(wire, model, size) == 0);
	PROP(get_be16(wire + fpdu_len_at(pos)) == (uint16_t)(n - 8));
	PROP(memcmp(wire + size - FPDU_CRC_LEN, fpdu + n - FPDU_CRC_LEN, FPDU_CRC_LEN) == 0);

	PROP(fpdu_remove_markers(wire, size, pos, &bad) == n);
	PROP(bad == 0);
	PROP(memcmp(wire, fpdu, n) == 0);

	if (damage_marker(model, size, pos, b)) {
		PROP(fpdu_remove_markers(model, size, pos, &bad) == n);
		PROP(bad != 0);
		PROP(memcmp(model, fpdu, n) == 0);
	}
	free(model);
	free(wire);
	free(fpdu);
	return pos + (uint32_t)size;
}

static void stream_of_fpdus(struct bytes *b)
{
	uint32_t pos = bytes_bool(b) ? 0 : bytes_u32(b) & ~3u;

	for (int i = 0; i < FPDUS_MAX && b->left > 0; i++) {
		pos = one_fpdu(b, pos);
		PROP(pos % 4 == 0);
	}
}

static void mulpdu(struct bytes *b)
{
	size_t emss = bytes_range(b, 160, 70000);
	uint32_t pos = bytes_u32(b) & ~3u;
	size_t plain = fpdu_mulpdu(emss, 0);
	size_t marked = fpdu_mulpdu(emss, 1);

	PROP(fpdu_size(plain) <= emss);
	PROP(fpdu_marked_size(pos, fpdu_size(marked)) <= emss);
	PROP(marked <= plain);
}

/* The octets of len, from the position pos on, that are in no marker. */
static size_t unmarked(uint32_t pos, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += (pos + i) % FPDU_MARKER_EVERY >= FPDU_MARKER_LEN;
	return n;
}

/* What a peer sends: any octets of any length, at any position. */
static void any_octets(struct bytes *b)
{
	uint32_t pos = bytes_u32(b) & ~3u;
	size_t len;
	uint8_t *wire = bytes_rest(b, FPDU_MAX, &len);
	int bad;
	size_t left = fpdu_remove_markers(wire, len, pos, &bad);

	PROP(left == unmarked(pos, len));
	free(wire);
}

void prop_run(struct bytes *b)
{
	static void (*const props[])(struct bytes *) = {
		stream_of_fpdus,
		mulpdu,
		any_octets,
	};

	props[bytes_u8(b) % (sizeof(props) / sizeof(props[0]))](b);
}
