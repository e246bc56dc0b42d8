// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Structs that grow from release to release: a program passes the number of bytes of one that it
// knows.
#ifndef VERBS_SIZED_H
#define VERBS_SIZED_H

#include <stddef.h>
#include <string.h>

/* Writes size bytes for such a program: the known bytes of ours, as far as they fit, then zeros. */
static inline void vb_sized_write(void *dst, size_t size, const void *src, size_t known)
{
	size_t both = size < known ? size : known;

	memcpy(dst, src, both);
	memset((char *)dst + both, 0, size - both);
}

#endif
