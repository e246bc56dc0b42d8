// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The forms of CRC32c, one file each. The functions of a form may be called only on a processor that has its instructions.
//
// Figures in GB/s of one processor, in its caches (Sapphire Rapids): a CRC of 16 KiB, the CRC and the copy of 64 KiB. memcpy has 45 there.
//
//   avx512  VPCLMULQDQ on 64 octets at a time, 256 in flight      107   42
//   avx2    the same on 32 octets                                   60   31
//   sse42   three chains of crc32 beside each other                 29   22
//   arm64   likewise, of crc32cx
//   table   8 octets at a step                                       2    2
#ifndef CRC_FORM_H
#define CRC_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct aw_crc_form {
	const char *name; /* NULL: the table */
	bool (*is_there)(void); /* true when processor and kernel have the instructions */
	/* as aw_crc32c and aw_crc32c_copy */
	uint32_t (*fold)(uint32_t crc, const void *data, size_t len);
	uint32_t (*copy)(uint32_t crc, void *dst, const void *src, size_t len);
};

/* Best first. The last one is the table, which is always there. */
extern const struct aw_crc_form aw_crc_forms[];

uint32_t aw_crc_fold_avx512(uint32_t crc, const void *data, size_t len);
uint32_t aw_crc_copy_avx512(uint32_t crc, void *dst, const void *src, size_t len);
uint32_t aw_crc_fold_avx2(uint32_t crc, const void *data, size_t len);
uint32_t aw_crc_copy_avx2(uint32_t crc, void *dst, const void *src, size_t len);
uint32_t aw_crc_fold_sse42(uint32_t crc, const void *data, size_t len);
uint32_t aw_crc_copy_sse42(uint32_t crc, void *dst, const void *src, size_t len);
uint32_t aw_crc_fold_arm64(uint32_t crc, const void *data, size_t len);
uint32_t aw_crc_copy_arm64(uint32_t crc, void *dst, const void *src, size_t len);
uint32_t aw_crc_fold_table(uint32_t crc, const void *data, size_t len);
uint32_t aw_crc_copy_table(uint32_t crc, void *dst, const void *src, size_t len);

#endif
