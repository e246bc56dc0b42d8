// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A copy by words, behind each of which the source may change.
#ifndef KSHIM_STRING_H
#define KSHIM_STRING_H

#include "kshim.h"

#include <stdio.h>
#include <string.h>

void *kshim_copy(void *dst, const void *src, size_t len);

#define strscpy(dst, src, size) ((void)snprintf(dst, size, "%s", src))

#define memcpy(dst, src, len) kshim_copy(dst, src, len)

#endif
