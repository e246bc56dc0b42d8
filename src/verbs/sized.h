// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Structs that grow from release to release: a program says how many octets of one it knows.
#ifndef VERBS_SIZED_H
#define VERBS_SIZED_H

#include <stddef.h>
#include <string.h>

/* Writes size octets for a program that knows so many, of the known ones of ours; what is beyond is zero. */
static inline void vb_sized_write(void *dst, size_t size, const void *src, size_t known)
{
	size_t both = size < known ? size : known;

	memcpy(dst, src, both);
	memset((char *)dst + both, 0, size - both);
}

#endif
