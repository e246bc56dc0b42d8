// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CRC32c in the form that the core needs. One of crc_isal.c and crc_table.c is built.
#ifndef NET_CRC_H
#define NET_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Folds len bytes into the raw register crc. */
uint32_t aw_crc32c(uint32_t crc, const void *data, size_t len);

#endif
