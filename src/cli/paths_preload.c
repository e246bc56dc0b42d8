// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// libanywarp-paths.so: for programs that look for a device's files themselves. Preloaded by `anywarp run`,
// it makes their calls with a path under /dev/infiniband or /sys/class/infiniband look into the
// directory that ANYWARP_PATHS names, where paths.c has put what they want to see. No other path is
// touched, and a path is never changed for a call that writes, other than by open.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static bool begins(const char *path, const char *start)
{
	size_t len = strlen(start);

	return !strncmp(path, start, len) && (!path[len] || path[len] == '/');
}

/* The path to use instead, in to where it is another. */
static const char *moved(const char *path, char to[PATH_MAX])
{
	const char *root;
	int len;

	if (!path || (!begins(path, "/dev/infiniband") && !begins(path, "/sys/class/infiniband")))
		return path;
	root = getenv("ANYWARP_PATHS");
	if (!root || !*root)
		return path;
	len = snprintf(to, PATH_MAX, "%s%s", root, path);
	return len < PATH_MAX ? to : path;
}

/* What the call would be without us. */
static void *next(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	if (!found)
		abort(); /* libc without a call that the program was linked with */
	return found;
}

/* O_TMPFILE has O_DIRECTORY in it, which alone makes nothing. */
static bool makes_file(int flags)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

/* What open is given behind its flags; there is nothing unless it makes a file. */
#define MODE_BEHIND(flags, mode)                                       \
	do {                                                           \
		va_list args;                                          \
		va_start(args, flags);                                 \
		(mode) = makes_file(flags) ? va_arg(args, mode_t) : 0; \
		va_end(args);                                          \
	} while (0)

static int open_by(const char *name, const char *path, int flags, mode_t mode)
{
	int (*call)(const char *, int, ...) = (int (*)(const char *, int, ...))next(name);
	char to[PATH_MAX];

	return call(moved(path, to), flags, mode);
}

static int openat_by(const char *name, int dir, const char *path, int flags, mode_t mode)
{
	int (*call)(int, const char *, int, ...) = (int (*)(int, const char *, int, ...))next(name);
	char to[PATH_MAX];

	return call(dir, moved(path, to), flags, mode);
}

EXPORT int open(const char *path, int flags, ...)
{
	mode_t mode;

	MODE_BEHIND(flags, mode);
	return open_by("open", path, flags, mode);
}

EXPORT int open64(const char *path, int flags, ...)
{
	mode_t mode;

	MODE_BEHIND(flags, mode);
	return open_by("open64", path, flags, mode);
}

EXPORT int openat(int dir, const char *path, int flags, ...)
{
	mode_t mode;

	MODE_BEHIND(flags, mode);
	return openat_by("openat", dir, path, flags, mode);
}

EXPORT int openat64(int dir, const char *path, int flags, ...)
{
	mode_t mode;

	MODE_BEHIND(flags, mode);
	return openat_by("openat64", dir, path, flags, mode);
}

EXPORT FILE *fopen(const char *path, const char *mode)
{
	FILE *(*call)(const char *, const char *) = (FILE * (*)(const char *, const char *))
		next("fopen");
	char to[PATH_MAX];

	return call(moved(path, to), mode);
}

EXPORT FILE *fopen64(const char *path, const char *mode)
{
	FILE *(*call)(const char *, const char *) = (FILE * (*)(const char *, const char *))
		next("fopen64");
	char to[PATH_MAX];

	return call(moved(path, to), mode);
}

EXPORT DIR *opendir(const char *path)
{
	DIR *(*call)(const char *) = (DIR * (*)(const char *)) next("opendir");
	char to[PATH_MAX];

	return call(moved(path, to));
}

static int stat_by(const char *name, const char *path, void *out)
{
	int (*call)(const char *, void *) = (int (*)(const char *, void *))next(name);
	char to[PATH_MAX];

	return call(moved(path, to), out);
}

EXPORT int stat(const char *path, struct stat *out)
{
	return stat_by("stat", path, out);
}

EXPORT int stat64(const char *path, struct stat64 *out)
{
	return stat_by("stat64", path, out);
}

EXPORT int lstat(const char *path, struct stat *out)
{
	return stat_by("lstat", path, out);
}

EXPORT int lstat64(const char *path, struct stat64 *out)
{
	return stat_by("lstat64", path, out);
}

static int fstatat_by(const char *name, int dir, const char *path, void *out, int flags)
{
	int (*call)(int, const char *, void *, int) =
		(int (*)(int, const char *, void *, int))next(name);
	char to[PATH_MAX];

	return call(dir, moved(path, to), out, flags);
}

EXPORT int fstatat(int dir, const char *path, struct stat *out, int flags)
{
	return fstatat_by("fstatat", dir, path, out, flags);
}

EXPORT int fstatat64(int dir, const char *path, struct stat64 *out, int flags)
{
	return fstatat_by("fstatat64", dir, path, out, flags);
}

EXPORT int statx(int dir, const char *path, int flags, unsigned int mask, struct statx *out)
{
	int (*call)(int, const char *, int, unsigned int, void *) =
		(int (*)(int, const char *, int, unsigned int, void *))next("statx");
	char to[PATH_MAX];

	return call(dir, moved(path, to), flags, mask, out);
}

EXPORT int access(const char *path, int mode)
{
	int (*call)(const char *, int) = (int (*)(const char *, int))next("access");
	char to[PATH_MAX];

	return call(moved(path, to), mode);
}

EXPORT ssize_t readlink(const char *path, char *out, size_t size)
{
	ssize_t (*call)(const char *, char *, size_t) =
		(ssize_t(*)(const char *, char *, size_t))next("readlink");
	char to[PATH_MAX];

	return call(moved(path, to), out, size);
}

EXPORT char *realpath(const char *path, char *out)
{
	char *(*call)(const char *, char *) = (char *(*)(const char *, char *))next("realpath");
	char to[PATH_MAX];

	return call(moved(path, to), out);
}
