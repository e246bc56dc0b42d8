// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CRC32c by wire/'s table, for processors without instructions for it.
#include "crc/form.h"

#include "wire/crc32c.h"

#include <string.h>

uint32_t aw_crc_fold_table(uint32_t crc, const void *data, size_t len)
{
	return crc32c_update(crc, data, len);
}

/* What is folded is the copy, since src may change. */
uint32_t aw_crc_copy_table(uint32_t crc, void *dst, const void *src, size_t len)
{
	memcpy(dst, src, len);
	return crc32c_update(crc, dst, len);
}
