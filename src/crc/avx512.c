// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CRC32c by VPCLMULQDQ on the registers of AVX-512: four vectors of 64 octets are each moved 256 octets on and added to the octets
// there, until 16 octets represent the message.
#include "crc/form.h"
#include "crc/powers.h"
#include "crc/x86.h"

#include "crc/walk.h"

#define VECTOR 64u
typedef __m512i vector;
#define VECTORS 4 /* in flight, since a product has a result after eight cycles */

#define FACTORS(n) _mm512_broadcast_i32x4(factors(AW_CRC_FIRST_##n, AW_CRC_SECOND_##n))

/* Adds v, moved on by the factors, to next. */
AW_CRC_INLINE __m512i add(__m512i v, __m512i by, __m512i next)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(v, by, 0x00),
					 _mm512_clmulepi64_epi128(v, by, 0x11), next, 0x96);
}

/* The vector that is `at` octets ahead. */
AW_CRC_INLINE __m512i take(const struct crc_walk *walk, size_t at)
{
	__m512i v = _mm512_loadu_si512(walk->src + at);

	__asm__("" : "+v"(v));
	if (walk->copies)
		_mm512_storeu_si512(walk->dst + at, v);
	return v;
}

/* Folds the first vector, which is taken, and all whole groups of vectors; one is there. */
AW_CRC_INLINE __m512i fold_groups(__m512i first, struct crc_walk *walk)
{
	const __m512i by = FACTORS(256);
	__m512i v[VECTORS] = { first };

#pragma GCC unroll 8
	for (int i = 1; i < VECTORS; i++)
		v[i] = take(walk, i * VECTOR);
	walk_on(walk, VECTORS * VECTOR);
	for (; walk->left >= VECTORS * VECTOR; walk_on(walk, VECTORS * VECTOR))
#pragma GCC unroll 8
		for (int i = 0; i < VECTORS; i++)
			v[i] = add(v[i], by, take(walk, i * VECTOR));
	v[2] = add(v[0], FACTORS(128), v[2]);
	v[3] = add(v[1], FACTORS(128), v[3]);
	return add(v[2], FACTORS(64), v[3]);
}

/* The raw register of the message that a vector represents. */
AW_CRC_INLINE uint32_t fold_vector(__m512i v)
{
	const __m256i by_32 = _mm512_castsi512_si256(FACTORS(32));
	const __m128i by_16 = _mm512_castsi512_si128(FACTORS(16));
	__m256i half = _mm512_castsi512_si256(v);
	__m128i sixteen;

	half = _mm256_xor_si256(_mm256_xor_si256(_mm256_clmulepi64_epi128(half, by_32, 0x00),
						 _mm256_clmulepi64_epi128(half, by_32, 0x11)),
				_mm512_extracti64x4_epi64(v, 1));
	sixteen = _mm256_castsi256_si128(half);
	sixteen = _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(sixteen, by_16, 0x00),
					      _mm_clmulepi64_si128(sixteen, by_16, 0x11)),
				_mm256_extracti128_si256(half, 1));
	return fold_sixteen(sixteen);
}

AW_CRC_INLINE vector vector_of(uint32_t crc)
{
	return _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc));
}

AW_CRC_INLINE vector add_next(vector v, vector next)
{
	return add(v, FACTORS(64), next);
}

#include "crc/vectors.h"

uint32_t aw_crc_fold_avx512(uint32_t crc, const void *data, size_t len)
{
	return fold_all(crc, &(struct crc_walk){ .src = data, .left = len });
}

uint32_t aw_crc_copy_avx512(uint32_t crc, void *dst, const void *src, size_t len)
{
	return fold_all(crc,
			&(struct crc_walk){ .src = src, .dst = dst, .left = len, .copies = true });
}
