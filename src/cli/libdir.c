// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds what lies beside the executable: the directory of our libibverbs.so.1 and librdmacm.so.1,
// which goes before the system's in LD_LIBRARY_PATH, and those of the bench.
#define _GNU_SOURCE // asprintf
#include "cli/cli.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static_assert(sizeof(AW_LIBDIR) <= PATH_MAX, "the installed directory is a path");

static bool holds_file(const char *dir, const char *name)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/%s", dir, name);

	return len > 0 && (size_t)len < sizeof(path) && access(path, R_OK) == 0;
}

static bool holds_both(const char *dir)
{
	return holds_file(dir, CLI_VERBS_LIB) && holds_file(dir, CLI_RDMACM_LIB);
}

// Writes the directory of the running executable, without a slash at its end.
static bool executable_dir(char dir[PATH_MAX])
{
	ssize_t len = readlink("/proc/self/exe", dir, PATH_MAX - 1);
	char *slash;

	if (len <= 0)
		return false;
	dir[len] = '\0';
	slash = strrchr(dir, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return true;
}

// Writes bin/relative; without its dots where it exists.
static bool beside(const char *bin, const char *relative, char dir[PATH_MAX])
{
	char joined[PATH_MAX];
	int len = snprintf(joined, sizeof(joined), "%s/%s", bin, relative);

	if (len <= 0 || (size_t)len >= sizeof(joined))
		return false;
	if (!realpath(joined, dir))
		memcpy(dir, joined, (size_t)len + 1);
	return true;
}

bool aw_libdir_find(char dir[PATH_MAX])
{
	char bin[PATH_MAX];
	bool right = executable_dir(bin);

	// The installed place goes first: beside an installed bin/, ../lib is the system's own.
	if (right && ((beside(bin, AW_LIBDIR_FROM_BIN, dir) && holds_both(dir)) ||
		      (beside(bin, "../lib", dir) && holds_both(dir))))
		return true;
	if (right && !holds_both(AW_LIBDIR))
		return false;
	strcpy(dir, AW_LIBDIR);
	return holds_both(dir);
}

const char *aw_libdir_remedy(void)
{
	return access("/proc/self/exe", F_OK) == 0
		       ? "build them ('./dev build') or install anywarp again"
		       : "mount /proc, which tells where this command is";
}

bool aw_beside_find(const char *const *places, const char *file, char dir[PATH_MAX])
{
	char bin[PATH_MAX];

	dir[0] = '\0';
	if (!executable_dir(bin))
		return false;
	for (size_t i = 0; places[i]; i++) {
		if (beside(bin, places[i], dir) && holds_file(dir, file))
			return true;
	}
	return false;
}

bool aw_libdir_export(const char *dir)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	char *joined;
	bool done;

	if (!old || !*old)
		return setenv("LD_LIBRARY_PATH", dir, 1) == 0;
	if (asprintf(&joined, "%s:%s", dir, old) < 0)
		return false;
	done = setenv("LD_LIBRARY_PATH", joined, 1) == 0;
	free(joined);
	return done;
}
