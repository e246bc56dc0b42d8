// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// libanywarp-paths.so: for programs that look for a device's files themselves. Preloaded by
// `anywarp run`, it makes their calls with a path of the device's files (paths_moved.c)
// look into the directory that ANYWARP_PATHS names, where paths.c has put them. No other path
// is touched, and a path is never changed for a call that writes, other than by open. The calls of
// programs built with _FORTIFY_SOURCE or for an older libc are in paths_relatives.c, those that go through directories in
// paths_walk.c, others that take a path in paths_places.c.
#define _GNU_SOURCE
#include "cli/paths_preload.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* O_TMPFILE includes O_DIRECTORY, which alone makes no file. */
static bool makes_file(int flags)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

/* Reads the mode that open has behind its flags; there is none unless it makes a file. */
#define MODE_BEHIND(flags, mode)                                       \
	do {                                                           \
		va_list args;                                          \
		va_start(args, flags);                                 \
		(mode) = makes_file(flags) ? va_arg(args, mode_t) : 0; \
		va_end(args);                                          \
	} while (0)

EXPORT int open(const char *path, int flags, ...)
{
	char to[PATH_MAX];
	mode_t mode;

	MODE_BEHIND(flags, mode);
	return aw_paths_opened(NEXT(open)(aw_paths_moved(path, to), flags, mode), path);
}

EXPORT int open64(const char *path, int flags, ...)
{
	char to[PATH_MAX];
	mode_t mode;

	MODE_BEHIND(flags, mode);
	return aw_paths_opened(NEXT(open64)(aw_paths_moved(path, to), flags, mode), path);
}

EXPORT int openat(int dir, const char *path, int flags, ...)
{
	char to[PATH_MAX];
	mode_t mode;

	MODE_BEHIND(flags, mode);
	return aw_paths_opened(NEXT(openat)(dir, aw_paths_moved_at(dir, path, to), flags, mode),
			       path);
}

EXPORT int openat64(int dir, const char *path, int flags, ...)
{
	char to[PATH_MAX];
	mode_t mode;

	MODE_BEHIND(flags, mode);
	return aw_paths_opened(NEXT(openat64)(dir, aw_paths_moved_at(dir, path, to), flags, mode),
			       path);
}

static FILE *stream_opened(FILE *file, const char *path)
{
	if (file)
		(void)aw_paths_opened(fileno(file), path);
	return file;
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
	char to[PATH_MAX];

	return stream_opened(NEXT(fopen)(aw_paths_moved(path, to), mode), path);
}

EXPORT FILE *fopen64(const char *path, const char *mode)
{
	char to[PATH_MAX];

	return stream_opened(NEXT(fopen64)(aw_paths_moved(path, to), mode), path);
}

EXPORT FILE *freopen(const char *path, const char *mode, FILE *stream)
{
	char to[PATH_MAX];

	return stream_opened(NEXT(freopen)(aw_paths_moved(path, to), mode, stream), path);
}

EXPORT FILE *freopen64(const char *path, const char *mode, FILE *stream)
{
	char to[PATH_MAX];

	return stream_opened(NEXT(freopen64)(aw_paths_moved(path, to), mode, stream), path);
}

EXPORT DIR *opendir(const char *path)
{
	char to[PATH_MAX];

	return NEXT(opendir)(aw_paths_moved(path, to));
}

EXPORT int scandir(const char *path, struct dirent ***names, int (*wanted)(const struct dirent *),
		   int (*order)(const struct dirent **, const struct dirent **))
{
	char to[PATH_MAX];

	return NEXT(scandir)(aw_paths_moved(path, to), names, wanted, order);
}

EXPORT int scandir64(const char *path, struct dirent64 ***names,
		     int (*wanted)(const struct dirent64 *),
		     int (*order)(const struct dirent64 **, const struct dirent64 **))
{
	char to[PATH_MAX];

	return NEXT(scandir64)(aw_paths_moved(path, to), names, wanted, order);
}

EXPORT int scandirat(int dir, const char *path, struct dirent ***names,
		     int (*wanted)(const struct dirent *),
		     int (*order)(const struct dirent **, const struct dirent **))
{
	char to[PATH_MAX];

	return NEXT(scandirat)(dir, aw_paths_moved_at(dir, path, to), names, wanted, order);
}

EXPORT int scandirat64(int dir, const char *path, struct dirent64 ***names,
		       int (*wanted)(const struct dirent64 *),
		       int (*order)(const struct dirent64 **, const struct dirent64 **))
{
	char to[PATH_MAX];

	return NEXT(scandirat64)(dir, aw_paths_moved_at(dir, path, to), names, wanted, order);
}

EXPORT int stat(const char *path, struct stat *out)
{
	char to[PATH_MAX];

	return NEXT(stat)(aw_paths_moved(path, to), out);
}

EXPORT int stat64(const char *path, struct stat64 *out)
{
	char to[PATH_MAX];

	return NEXT(stat64)(aw_paths_moved(path, to), out);
}

EXPORT int lstat(const char *path, struct stat *out)
{
	char to[PATH_MAX];

	return NEXT(lstat)(aw_paths_moved(path, to), out);
}

EXPORT int lstat64(const char *path, struct stat64 *out)
{
	char to[PATH_MAX];

	return NEXT(lstat64)(aw_paths_moved(path, to), out);
}

EXPORT int fstatat(int dir, const char *path, struct stat *out, int flags)
{
	char to[PATH_MAX];

	return NEXT(fstatat)(dir, aw_paths_moved_at(dir, path, to), out, flags);
}

EXPORT int fstatat64(int dir, const char *path, struct stat64 *out, int flags)
{
	char to[PATH_MAX];

	return NEXT(fstatat64)(dir, aw_paths_moved_at(dir, path, to), out, flags);
}

EXPORT int statx(int dir, const char *path, int flags, unsigned int mask, struct statx *out)
{
	char to[PATH_MAX];

	return NEXT(statx)(dir, aw_paths_moved_at(dir, path, to), flags, mask, out);
}

EXPORT int access(const char *path, int mode)
{
	char to[PATH_MAX];

	return NEXT(access)(aw_paths_moved(path, to), mode);
}

EXPORT int faccessat(int dir, const char *path, int mode, int flags)
{
	char to[PATH_MAX];

	return NEXT(faccessat)(dir, aw_paths_moved_at(dir, path, to), mode, flags);
}

EXPORT int euidaccess(const char *path, int mode)
{
	char to[PATH_MAX];

	return NEXT(euidaccess)(aw_paths_moved(path, to), mode);
}

EXPORT int eaccess(const char *path, int mode)
{
	char to[PATH_MAX];

	return NEXT(eaccess)(aw_paths_moved(path, to), mode);
}

EXPORT ssize_t readlink(const char *path, char *out, size_t size)
{
	char to[PATH_MAX];

	return NEXT(readlink)(aw_paths_moved(path, to), out, size);
}

EXPORT ssize_t readlinkat(int dir, const char *path, char *out, size_t size)
{
	char to[PATH_MAX];

	return NEXT(readlinkat)(dir, aw_paths_moved_at(dir, path, to), out, size);
}

EXPORT char *realpath(const char *path, char *out)
{
	char to[PATH_MAX];

	return aw_paths_shown(NEXT(realpath)(aw_paths_moved(path, to), out));
}

EXPORT char *canonicalize_file_name(const char *path)
{
	char to[PATH_MAX];

	return aw_paths_shown(NEXT(canonicalize_file_name)(aw_paths_moved(path, to)));
}
