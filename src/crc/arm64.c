// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CRC32c by crc32cx of ARMv8.1, in three lanes that PMULL joins.
#include "crc/form.h"

#include <arm_acle.h>
#include <arm_neon.h>

static inline uint64_t fold_word(uint64_t crc, uint64_t word)
{
	return __crc32cd((uint32_t)crc, word);
}

static inline uint32_t fold_half(uint32_t crc, uint32_t half)
{
	return __crc32cw(crc, half);
}

static inline uint32_t fold_octet(uint32_t crc, uint8_t octet)
{
	return __crc32cb(crc, octet);
}

static inline uint64_t multiply(uint32_t a, uint32_t b)
{
	return vgetq_lane_u64(vreinterpretq_u64_p128(vmull_p64(a, b)), 0);
}

#include "crc/lanes.h"

uint32_t aw_crc_fold_arm64(uint32_t crc, const void *data, size_t len)
{
	return fold_all(crc, &(struct crc_walk){ .src = data, .left = len });
}

uint32_t aw_crc_copy_arm64(uint32_t crc, void *dst, const void *src, size_t len)
{
	return fold_all(crc,
			&(struct crc_walk){ .src = src, .dst = dst, .left = len, .copies = true });
}
