// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How long a program that hangs is left alone: longer on a slow machine, as ./dev test measures it.
#ifndef TESTS_LIB_LIMIT_H
#define TESTS_LIB_LIMIT_H

#include <stdlib.h>

static inline unsigned int limit_s(unsigned int seconds)
{
	const char *slowness = getenv("ANYWARP_SLOWNESS");

	return seconds * (unsigned int)(slowness ? atoi(slowness) : 1);
}

#endif
