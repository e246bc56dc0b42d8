// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/runtime.h"

#include <stdlib.h>
#include <string.h>

void aw_runtime_leave(void)
{
	const char *runtime = secure_getenv(AW_RUNTIME_ENV);
	char *list = secure_getenv("LD_PRELOAD");
	size_t len = runtime ? strlen(runtime) : 0;

	if (len && list && strncmp(list, runtime, len) == 0 && list[len] == ':')
		memmove(list, list + len + 1, strlen(list + len + 1) + 1);
	if (runtime)
		unsetenv(AW_RUNTIME_ENV);
}
