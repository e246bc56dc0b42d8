// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The loader finds a preloaded library before any in LD_LIBRARY_PATH.
#include "cli/preload.h"

#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX 4096

// A name without a slash is looked for in LD_LIBRARY_PATH, where anywarp's directory is the first.
static bool is_ours(const char *file)
{
	char dir[PATH_MAX], ours[PATH_MAX], real[PATH_MAX];
	size_t len;

	if (!aw_libdir_find(dir) || !realpath(dir, ours))
		return false;
	if (!strchr(file, '/'))
		return !strcmp(file, CLI_VERBS_LIB) || !strcmp(file, CLI_RDMACM_LIB);
	len = strlen(ours);
	return realpath(file, real) && !strncmp(real, ours, len) && real[len] == '/';
}

static bool find_in(const char *list, char file[PATH_MAX])
{
	while (*list) {
		size_t len = strcspn(list, " \t\n:");
		const char *name;

		snprintf(file, PATH_MAX, "%.*s", (int)len, list);
		name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
		if ((!strncmp(name, "libibverbs", 10) || !strncmp(name, "librdmacm", 9)) &&
		    !is_ours(file))
			return true;
		list += len;
		list += *list != '\0';
	}
	return false;
}

bool aw_preload_find(char file[PATH_MAX], const char **where)
{
	const char *list = getenv("LD_PRELOAD");
	char text[FILE_MAX] = "";
	FILE *system;

	*where = "LD_PRELOAD";
	if (list && find_in(list, file))
		return true;
	*where = PRELOAD_FILE;
	system = fopen(PRELOAD_FILE, "re");
	if (system) {
		text[fread(text, 1, sizeof(text) - 1, system)] = '\0';
		fclose(system);
	}
	return find_in(text, file);
}
