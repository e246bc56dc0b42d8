// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Preloaded, it has a process give a peer's start-up less time than the library would: ANYWARP_TEST_STARTUP_MS.
#include "net/base/bounds.h"

#include <stdlib.h>

__attribute__((constructor)) static void hurry(void)
{
	const char *ms = getenv("ANYWARP_TEST_STARTUP_MS");

	if (ms)
		aw_bounds.startup_ms = (uint32_t)atoi(ms);
}
