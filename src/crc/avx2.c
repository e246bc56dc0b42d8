// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CRC32c by VPCLMULQDQ on the registers of AVX2: eight vectors of 32 octets are each moved 256 octets on and added to the octets there,
// until 16 octets represent the message.
#include "crc/form.h"
#include "crc/powers.h"
#include "crc/x86.h"

#include "crc/walk.h"

#define VECTOR 32u
typedef __m256i vector;
#define VECTORS 8 /* in flight, since a product has a result only after several cycles */

#define FACTORS(n) _mm256_broadcastsi128_si256(factors(AW_CRC_FIRST_##n, AW_CRC_SECOND_##n))

/* Adds v, moved on by the factors, to next. */
AW_CRC_INLINE __m256i add(__m256i v, __m256i by, __m256i next)
{
	return _mm256_xor_si256(_mm256_xor_si256(_mm256_clmulepi64_epi128(v, by, 0x00),
						 _mm256_clmulepi64_epi128(v, by, 0x11)),
				next);
}

/* The vector that is `at` octets ahead. */
AW_CRC_INLINE __m256i take(const struct crc_walk *walk, size_t at)
{
	__m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(walk->src + at));

	__asm__("" : "+x"(v));
	if (walk->copies)
		_mm256_storeu_si256((__m256i *)(void *)(walk->dst + at), v);
	return v;
}

/* Folds the first vector, which is taken, and all whole groups of vectors; one is there. */
AW_CRC_INLINE __m256i fold_groups(__m256i first, struct crc_walk *walk)
{
	const __m256i by = FACTORS(256);
	__m256i v[VECTORS] = { first };

#pragma GCC unroll 8
	for (int i = 1; i < VECTORS; i++)
		v[i] = take(walk, i * VECTOR);
	walk_on(walk, VECTORS * VECTOR);
	for (; walk->left >= VECTORS * VECTOR; walk_on(walk, VECTORS * VECTOR))
#pragma GCC unroll 8
		for (int i = 0; i < VECTORS; i++)
			v[i] = add(v[i], by, take(walk, i * VECTOR));
#pragma GCC unroll 8
	for (int i = 0; i < 4; i++)
		v[4 + i] = add(v[i], FACTORS(128), v[4 + i]);
	v[6] = add(v[4], FACTORS(64), v[6]);
	v[7] = add(v[5], FACTORS(64), v[7]);
	return add(v[6], FACTORS(32), v[7]);
}

/* The raw register of the message that a vector represents. */
AW_CRC_INLINE uint32_t fold_vector(__m256i v)
{
	const __m128i by = _mm256_castsi256_si128(FACTORS(16));
	const __m128i first = _mm256_castsi256_si128(v);

	return fold_sixteen(_mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(first, by, 0x00),
							_mm_clmulepi64_si128(first, by, 0x11)),
					  _mm256_extracti128_si256(v, 1)));
}

AW_CRC_INLINE vector vector_of(uint32_t crc)
{
	return _mm256_zextsi128_si256(_mm_cvtsi32_si128((int)crc));
}

AW_CRC_INLINE vector add_next(vector v, vector next)
{
	return add(v, FACTORS(32), next);
}

#include "crc/vectors.h"

uint32_t aw_crc_fold_avx2(uint32_t crc, const void *data, size_t len)
{
	return fold_all(crc, &(struct crc_walk){ .src = data, .left = len });
}

uint32_t aw_crc_copy_avx2(uint32_t crc, void *dst, const void *src, size_t len)
{
	return fold_all(crc,
			&(struct crc_walk){ .src = src, .dst = dst, .left = len, .copies = true });
}
