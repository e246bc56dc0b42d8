// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CRC32c from ISA-L, which picks the best vector form for the processor.
#include "base/vector.h"
#include "net/qp/crc.h"

#include <isa-l/crc.h>

uint32_t aw_crc32c(uint32_t crc, const void *data, size_t len)
{
	/* ISA-L takes an int and promises not to write, though its type does not say so. */
	crc = crc32_iscsi((unsigned char *)(uintptr_t)data, (int)len, crc);
	aw_vector_clear_upper();
	return crc;
}
