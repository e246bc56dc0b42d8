// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the forms for x86-64 share: SSE4.2's crc32, and how 16 octets that represent a message become its raw register.
#ifndef CRC_X86_H
#define CRC_X86_H

#include <immintrin.h>
#include <stdint.h>

/* 64 bits, as the instruction has them: the compiler does not know that the upper ones are zero, and would clear them each time. */
static inline uint64_t fold_word(uint64_t crc, uint64_t word)
{
	return _mm_crc32_u64(crc, word);
}

static inline uint32_t fold_half(uint32_t crc, uint32_t half)
{
	return _mm_crc32_u32(crc, half);
}

static inline uint32_t fold_octet(uint32_t crc, uint8_t octet)
{
	return _mm_crc32_u8(crc, octet);
}

static inline uint32_t fold_sixteen(__m128i octets)
{
	uint64_t crc = fold_word(0, (uint64_t)_mm_cvtsi128_si64(octets));

	return (uint32_t)fold_word(crc, (uint64_t)_mm_extract_epi64(octets, 1));
}

/* The factors that move 16 octets on: FIRST and SECOND of crc/powers.h. */
static inline __m128i factors(uint32_t first, uint32_t second)
{
	return _mm_set_epi64x(second, first);
}

#endif
