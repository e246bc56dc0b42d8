// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A walk over octets that are folded and, where the caller asks, copied. The file that includes this one has the processor's
// instructions: fold_word, fold_half and fold_octet, which fold 8, 4 and 1 octets.
//
// The program may change the octets meanwhile. Each is read once, into a register, and the register is both stored and folded.
#ifndef CRC_WALK_H
#define CRC_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Whether there is a copy is known where a walk begins, and the loops have no branch for it. */
#define AW_CRC_INLINE static inline __attribute__((always_inline))

struct crc_walk {
	const uint8_t *src;
	uint8_t *dst; /* where copies */
	size_t left;
	bool copies;
};

AW_CRC_INLINE void walk_on(struct crc_walk *walk, size_t len)
{
	walk->src += len;
	walk->left -= len;
	if (walk->copies)
		walk->dst += len;
}

/* The 8 octets that are `at` octets ahead. The asm keeps the compiler from reading them a second time. */
AW_CRC_INLINE uint64_t take_word(const struct crc_walk *walk, size_t at)
{
	uint64_t word;

	memcpy(&word, walk->src + at, sizeof(word));
	__asm__("" : "+r"(word));
	if (walk->copies)
		memcpy(walk->dst + at, &word, sizeof(word));
	return word;
}

AW_CRC_INLINE uint32_t take_half(const struct crc_walk *walk, size_t at)
{
	uint32_t half;

	memcpy(&half, walk->src + at, sizeof(half));
	__asm__("" : "+r"(half));
	if (walk->copies)
		memcpy(walk->dst + at, &half, sizeof(half));
	return half;
}

AW_CRC_INLINE uint8_t take_octet(const struct crc_walk *walk, size_t at)
{
	uint8_t octet = walk->src[at];

	__asm__("" : "+r"(octet));
	if (walk->copies)
		walk->dst[at] = octet;
	return octet;
}

/* Folds the next len octets, one word after another. */
AW_CRC_INLINE uint32_t fold_next(uint32_t crc, struct crc_walk *walk, size_t len)
{
	const size_t words = len & ~(size_t)7;
	uint64_t wide = crc;
	size_t at = 0;

#pragma GCC unroll 4
	for (; at < words; at += 8)
		wide = fold_word(wide, take_word(walk, at));
	crc = (uint32_t)wide;
	if (len & 4) {
		crc = fold_half(crc, take_half(walk, at));
		at += 4;
	}
	for (; at < len; at++)
		crc = fold_octet(crc, take_octet(walk, at));
	walk_on(walk, len);
	return crc;
}

#endif
