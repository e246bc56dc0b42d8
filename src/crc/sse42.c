// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CRC32c by crc32 (SSE4.2), in three lanes that PCLMULQDQ joins.
#include "crc/form.h"
#include "crc/x86.h"

static inline uint64_t multiply(uint32_t a, uint32_t b)
{
	return (uint64_t)_mm_cvtsi128_si64(
		_mm_clmulepi64_si128(_mm_cvtsi64_si128(a), _mm_cvtsi64_si128(b), 0x00));
}

#include "crc/lanes.h"

uint32_t aw_crc_fold_sse42(uint32_t crc, const void *data, size_t len)
{
	return fold_all(crc, &(struct crc_walk){ .src = data, .left = len });
}

uint32_t aw_crc_copy_sse42(uint32_t crc, void *dst, const void *src, size_t len)
{
	return fold_all(crc,
			&(struct crc_walk){ .src = src, .dst = dst, .left = len, .copies = true });
}
