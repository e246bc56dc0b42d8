// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CRC32c by the best instructions that the processor has, alone or in one walk with a copy. They are chosen at the first call, from
// crc/form.h. wire/crc32c.h has what a raw register is.
#ifndef CRC_CRC_H
#define CRC_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Folds len bytes into the raw register crc. */
uint32_t aw_crc32c(uint32_t crc, const void *data, size_t len);

/*
 * Copies len bytes and folds them. src and dst do not overlap. What is folded is what dst gets, also while another thread changes src:
 * each byte of src is read once. Nobody else may change dst.
 */
uint32_t aw_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t len);

/* The name of the instructions that were chosen; NULL: none, the table of wire/crc32c.c. */
const char *aw_crc32c_instructions(void);

#endif
