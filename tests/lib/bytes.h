// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A cursor that draws a test's choices from a byte string, so that one function serves seeded
// runs and libFuzzer alike. A string that has run out yields zeros: every string is a valid test.
#ifndef LIB_BYTES_H
#define LIB_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct bytes {
	const uint8_t *p;
	size_t left;
};

static inline uint8_t bytes_u8(struct bytes *b)
{
	if (b->left == 0)
		return 0;
	b->left--;
	return *b->p++;
}

static inline uint16_t bytes_u16(struct bytes *b)
{
	uint16_t high = bytes_u8(b);

	return (uint16_t)(high << 8 | bytes_u8(b));
}

static inline uint32_t bytes_u32(struct bytes *b)
{
	uint32_t high = bytes_u16(b);

	return high << 16 | bytes_u16(b);
}

static inline uint64_t bytes_u64(struct bytes *b)
{
	uint64_t high = bytes_u32(b);

	return high << 32 | bytes_u32(b);
}

static inline bool bytes_bool(struct bytes *b)
{
	return bytes_u8(b) & 1;
}

/* A value from lo to hi, both included; takes no more octets than the range needs. */
static inline uint64_t bytes_range(struct bytes *b, uint64_t lo, uint64_t hi)
{
	uint64_t span = hi - lo;
	uint64_t v = 0;

	for (uint64_t s = span; s > 0; s >>= 8)
		v = v << 8 | bytes_u8(b);
	return span == UINT64_MAX ? v : lo + v % (span + 1);
}

/* The next len octets, zeros where the string has ended. */
static inline void bytes_take(struct bytes *b, uint8_t *dst, size_t len)
{
	for (size_t i = 0; i < len; i++)
		dst[i] = bytes_u8(b);
}

/*
 * The rest of the string, at most max octets of it, in memory of exactly that size, so that a
 * sanitizer sees a read of one octet too many. The caller frees it.
 */
static inline uint8_t *bytes_rest(struct bytes *b, size_t max, size_t *len)
{
	uint8_t *copy;

	*len = b->left < max ? b->left : max;
	copy = malloc(*len);
	if (!copy && *len > 0)
		abort();
	bytes_take(b, copy, *len);
	return copy;
}

#endif
