// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CRC32c eight octets at a step ("slicing by 8"), from constant tables: no start-up, no state,
// so any thread may be first. RFC 3720 B.4 has the polynomial and the check values.
#include "wire/crc32c.h"

#include "wire/octets.h"

/*
 * A CRC is linear, so the 256 values of a table follow from the eight at the indices 1, 2, 4 to
 * 128: the entry of an index is the exclusive or of those of its bits.
 */
#define SPAN_1(v, a) (v), (v) ^ (a)
#define SPAN_2(v, a, b) SPAN_1(v, a), SPAN_1((v) ^ (b), a)
#define SPAN_3(v, a, b, c) SPAN_2(v, a, b), SPAN_2((v) ^ (c), a, b)
#define SPAN_4(v, a, b, c, d) SPAN_3(v, a, b, c), SPAN_3((v) ^ (d), a, b, c)
#define SPAN_5(v, a, b, c, d, e) SPAN_4(v, a, b, c, d), SPAN_4((v) ^ (e), a, b, c, d)
#define SPAN_6(v, a, b, c, d, e, f) SPAN_5(v, a, b, c, d, e), SPAN_5((v) ^ (f), a, b, c, d, e)
#define SPAN_7(v, a, b, c, d, e, f, g) \
	SPAN_6(v, a, b, c, d, e, f), SPAN_6((v) ^ (g), a, b, c, d, e, f)
#define SLICE(a, b, c, d, e, f, g, h)                                                  \
	{                                                                              \
		SPAN_7(0u, a, b, c, d, e, f, g), SPAN_7(0u ^ (h), a, b, c, d, e, f, g) \
	}

/* table[k][i]: the register after octet i and k further zero octets. */
static const uint32_t table[8][256] = {
	SLICE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc,
	      0x82f63b78),
	SLICE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604,
	      0xfbc3faf9),
	SLICE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9,
	      0x8b277743),
	SLICE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7,
	      0x52a0c93f),
	SLICE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae,
	      0x6ea2d55c),
	SLICE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb,
	      0x1c08b7d6),
	SLICE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a,
	      0xf56e0ef4),
	SLICE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32,
	      0x34019664),
};

static uint32_t fold_octet(uint32_t crc, uint8_t octet)
{
	return crc >> 8 ^ table[0][(crc ^ octet) & 0xff];
}

static uint32_t fold_word(uint32_t v, size_t zeros)
{
	return table[zeros + 3][v & 0xff] ^ table[zeros + 2][v >> 8 & 0xff] ^
	       table[zeros + 1][v >> 16 & 0xff] ^ table[zeros][v >> 24];
}

uint32_t crc32c_update(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (; len >= 8; len -= 8, p += 8)
		crc = fold_word(crc ^ get_le32(p), 4) ^ fold_word(get_le32(p + 4), 0);
	for (; len > 0; len--, p++)
		crc = fold_octet(crc, *p);
	return crc;
}
