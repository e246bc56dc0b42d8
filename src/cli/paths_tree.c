// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cli/paths_tree.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool path_join(const struct paths_tree *tree, const char *path, char joined[PATH_MAX])
{
	if (snprintf(joined, PATH_MAX, "%s%s", tree->root, path) < PATH_MAX)
		return true;
	errno = ENAMETOOLONG;
	return false;
}

bool aw_paths_directory(const struct paths_tree *tree, const char *format, ...)
{
	char path[PATH_MAX], joined[PATH_MAX];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	return len < (int)sizeof(path) && path_join(tree, path, joined) &&
	       (mkdir(joined, 0755) == 0 || errno == EEXIST);
}

bool aw_paths_link(const struct paths_tree *tree, const char *path, const char *target)
{
	char joined[PATH_MAX];

	return path_join(tree, path, joined) && (symlink(target, joined) == 0 || errno == EEXIST);
}

static bool file_write(const char *path, mode_t mode, const char *text)
{
	FILE *file = fopen(path, "we");
	bool done;

	if (!file)
		return false;
	done = fputs(text, file) >= 0 && fchmod(fileno(file), mode) == 0;
	return fclose(file) == 0 && done;
}

bool aw_paths_file(const struct paths_tree *tree, const char *path, mode_t mode, const char *text)
{
	char joined[PATH_MAX], part[PATH_MAX];

	if (!path_join(tree, path, joined))
		return false;
	if (snprintf(part, sizeof(part), "%s/part-%d", tree->root, (int)getpid()) >= PATH_MAX) {
		errno = ENAMETOOLONG;
		return false;
	}
	/* A process that was killed may have had the number; the mode of its file forbids to write it. */
	(void)unlink(part);
	if (file_write(part, mode, text) && rename(part, joined) == 0)
		return true;
	int error = errno;

	(void)unlink(part);
	errno = error;
	return false;
}

void aw_paths_remove(const struct paths_tree *tree, const char *path)
{
	char joined[PATH_MAX];

	if (path_join(tree, path, joined))
		(void)unlink(joined);
}
