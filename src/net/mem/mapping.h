// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Checks that memory that a program registers is mapped. Brings in one page of each mapped file,
// and pins nothing.
#ifndef NET_MAPPING_H
#define NET_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * 0, or EFAULT: some of the range, which does not wrap, is not mapped, may not be read or, with
 * write, written, or lies behind the end of its file. On Linux before 6.11, or without /proc,
 * access is checked only at the first and the last byte.
 */
int aw_mapping_check(const uint8_t *at, size_t len, bool write);

/*
 * Brings in the pages of these bytes, as an access would; false when the access would fault. Only
 * Linux 5.14 and newer can tell: when aw_mapping_can_tell is false, the result is always true.
 */
bool aw_mapping_reach(const uint8_t *at, size_t len, bool write);
bool aw_mapping_can_tell(void);

#endif
