// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "wire/rnr.h"

#define NO_SEGMENT 0x00 /* neither tagged nor last, DDP version 0 */

void rnr_put(enum rnr_kind kind, uint8_t *p)
{
	p[0] = NO_SEGMENT;
	p[1] = (uint8_t)kind;
}

bool rnr_get(const uint8_t *ulpdu, size_t len, enum rnr_kind *kind)
{
	if (len != RNR_LEN || ulpdu[0] != NO_SEGMENT || ulpdu[1] < RNR_NOT_READY ||
	    ulpdu[1] > RNR_READY)
		return false;
	*kind = (enum rnr_kind)ulpdu[1];
	return true;
}
