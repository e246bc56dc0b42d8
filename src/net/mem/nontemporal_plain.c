// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The copy where the processor has no non-temporal stores, or none that C can name.
#include "net/mem/nontemporal.h"

#include <string.h>

void aw_nontemporal_copy(uint8_t *dst, const uint8_t *src, size_t len)
{
	memcpy(dst, src, len);
}
