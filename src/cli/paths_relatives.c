// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The same calls under the names used by programs built with _FORTIFY_SOURCE or for a libc before
// 2.33, whose stat was __xstat, and under libc's own names for them.
#define _GNU_SOURCE
#include "cli/paths_preload.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

int __open(const char *path, int flags, ...);
int __open64(const char *path, int flags, ...);
FILE *_IO_fopen(const char *path, const char *mode);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
char *__realpath_chk(const char *path, char *out, size_t room);
ssize_t __readlink_chk(const char *path, char *out, size_t size, size_t room);
ssize_t __readlinkat_chk(int dir, const char *path, char *out, size_t size, size_t room);
int __xstat(int version, const char *path, struct stat *out);
int __xstat64(int version, const char *path, struct stat64 *out);
int __lxstat(int version, const char *path, struct stat *out);
int __lxstat64(int version, const char *path, struct stat64 *out);
int __fxstatat(int version, int dir, const char *path, struct stat *out, int flags);
int __fxstatat64(int version, int dir, const char *path, struct stat64 *out, int flags);

/* A mode that was not passed is not used either. */
EXPORT int __open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	return open(path, flags, mode);
}

EXPORT int __open64(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	return open64(path, flags, mode);
}

EXPORT FILE *_IO_fopen(const char *path, const char *mode)
{
	return fopen(path, mode);
}

EXPORT int __open_2(const char *path, int flags)
{
	char to[PATH_MAX];

	return aw_paths_opened(NEXT(__open_2)(aw_paths_moved(path, to), flags), path);
}

EXPORT int __open64_2(const char *path, int flags)
{
	char to[PATH_MAX];

	return aw_paths_opened(NEXT(__open64_2)(aw_paths_moved(path, to), flags), path);
}

EXPORT int __openat_2(int dir, const char *path, int flags)
{
	char to[PATH_MAX];

	return aw_paths_opened(NEXT(__openat_2)(dir, aw_paths_moved_at(dir, path, to), flags),
			       path);
}

EXPORT int __openat64_2(int dir, const char *path, int flags)
{
	char to[PATH_MAX];

	return aw_paths_opened(NEXT(__openat64_2)(dir, aw_paths_moved_at(dir, path, to), flags),
			       path);
}

EXPORT char *__realpath_chk(const char *path, char *out, size_t room)
{
	char to[PATH_MAX];

	return aw_paths_shown(NEXT(__realpath_chk)(aw_paths_moved(path, to), out, room));
}

EXPORT ssize_t __readlink_chk(const char *path, char *out, size_t size, size_t room)
{
	char to[PATH_MAX];

	return NEXT(__readlink_chk)(aw_paths_moved(path, to), out, size, room);
}

EXPORT ssize_t __readlinkat_chk(int dir, const char *path, char *out, size_t size, size_t room)
{
	char to[PATH_MAX];

	return NEXT(__readlinkat_chk)(dir, aw_paths_moved_at(dir, path, to), out, size, room);
}

EXPORT int __xstat(int version, const char *path, struct stat *out)
{
	char to[PATH_MAX];

	return NEXT(__xstat)(version, aw_paths_moved(path, to), out);
}

EXPORT int __xstat64(int version, const char *path, struct stat64 *out)
{
	char to[PATH_MAX];

	return NEXT(__xstat64)(version, aw_paths_moved(path, to), out);
}

EXPORT int __lxstat(int version, const char *path, struct stat *out)
{
	char to[PATH_MAX];

	return NEXT(__lxstat)(version, aw_paths_moved(path, to), out);
}

EXPORT int __lxstat64(int version, const char *path, struct stat64 *out)
{
	char to[PATH_MAX];

	return NEXT(__lxstat64)(version, aw_paths_moved(path, to), out);
}

EXPORT int __fxstatat(int version, int dir, const char *path, struct stat *out, int flags)
{
	char to[PATH_MAX];

	return NEXT(__fxstatat)(version, dir, aw_paths_moved_at(dir, path, to), out, flags);
}

EXPORT int __fxstatat64(int version, int dir, const char *path, struct stat64 *out, int flags)
{
	char to[PATH_MAX];

	return NEXT(__fxstatat64)(version, dir, aw_paths_moved_at(dir, path, to), out, flags);
}
