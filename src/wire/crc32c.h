// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CRC32c (RFC 3720 B.4, RFC 5044 4.4) from a table: the form for any processor. User space has others in src/crc.
#ifndef WIRE_CRC32C_H
#define WIRE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#define CRC32C_INIT 0xffffffffu

/* Folds len octets into a raw register; start from CRC32C_INIT. */
uint32_t crc32c_update(uint32_t crc, const void *data, size_t len);

/* The finished value; MPA puts it on the wire with put_le32(). */
static inline uint32_t crc32c_final(uint32_t crc)
{
	return ~crc;
}

#endif
