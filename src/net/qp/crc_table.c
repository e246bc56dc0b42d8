// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CRC32c from wire/'s table, where ISA-L is missing.
#include "net/qp/crc.h"

#include "wire/crc32c.h"

uint32_t aw_crc32c(uint32_t crc, const void *data, size_t len)
{
	return crc32c_update(crc, data, len);
}
