// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The working directory, and calls that ask of a path what is no file's text: extended attributes, which ls -l looks for, and
// file systems.
#define _GNU_SOURCE
#include "cli/paths_preload.h"

#include <stdlib.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

char *__getcwd_chk(char *out, size_t size, size_t room);
int __statfs(const char *path, struct statfs *out);

EXPORT int chdir(const char *path)
{
	char to[PATH_MAX];

	return NEXT(chdir)(aw_paths_moved(path, to));
}

EXPORT char *getcwd(char *out, size_t size)
{
	return aw_paths_shown(NEXT(getcwd)(out, size));
}

EXPORT char *__getcwd_chk(char *out, size_t size, size_t room)
{
	return aw_paths_shown(NEXT(__getcwd_chk)(out, size, room));
}

EXPORT char *get_current_dir_name(void)
{
	return aw_paths_shown(NEXT(get_current_dir_name)());
}

EXPORT ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
	char to[PATH_MAX];

	return NEXT(getxattr)(aw_paths_moved(path, to), name, value, size);
}

EXPORT ssize_t lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	char to[PATH_MAX];

	return NEXT(lgetxattr)(aw_paths_moved(path, to), name, value, size);
}

EXPORT ssize_t listxattr(const char *path, char *list, size_t size)
{
	char to[PATH_MAX];

	return NEXT(listxattr)(aw_paths_moved(path, to), list, size);
}

EXPORT ssize_t llistxattr(const char *path, char *list, size_t size)
{
	char to[PATH_MAX];

	return NEXT(llistxattr)(aw_paths_moved(path, to), list, size);
}

EXPORT int statfs(const char *path, struct statfs *out)
{
	char to[PATH_MAX];

	return NEXT(statfs)(aw_paths_moved(path, to), out);
}

EXPORT int __statfs(const char *path, struct statfs *out)
{
	return statfs(path, out);
}

EXPORT int statfs64(const char *path, struct statfs64 *out)
{
	char to[PATH_MAX];

	return NEXT(statfs64)(aw_paths_moved(path, to), out);
}

EXPORT int statvfs(const char *path, struct statvfs *out)
{
	char to[PATH_MAX];

	return NEXT(statvfs)(aw_paths_moved(path, to), out);
}

EXPORT int statvfs64(const char *path, struct statvfs64 *out)
{
	char to[PATH_MAX];

	return NEXT(statvfs64)(aw_paths_moved(path, to), out);
}

EXPORT long pathconf(const char *path, int name)
{
	char to[PATH_MAX];

	return NEXT(pathconf)(aw_paths_moved(path, to), name);
}
