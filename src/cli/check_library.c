// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cli/check_library.h"

#include "cli/cli.h"
#include "cli/launch.h"

#include <stdio.h>
#include <unistd.h>

#define CHECK_LIB "libanywarp-check.so"

bool aw_check_library_preload(const char *who, const char *dir)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/" CHECK_LIB, dir);

	if (len > 0 && (size_t)len < sizeof(path) && access(path, R_OK) == 0)
		return aw_launch_preload(who, dir, CHECK_LIB);
	fprintf(stderr, "%s: " CHECK_LIB " is not in %s: %s\n", who, dir, aw_libdir_remedy());
	return false;
}
