// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Calls of libc that go through directories by themselves: its own calls of opendir and stat come to no wrapper. The program
// gets the paths that it knows, but for fts(3), whose entries lie in libc's memory: there fts_path is the real one, which
// can be opened as well.
#define _GNU_SOURCE
#include "cli/paths_preload.h"

#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The wrappers of paths_preload.c take the place of what libc would call itself. */
static void *folder_open(const char *path)
{
	return opendir(path);
}

static struct dirent *folder_read(void *folder)
{
	return readdir(folder);
}

static struct dirent64 *folder_read64(void *folder)
{
	return readdir64(folder);
}

static void folder_close(void *folder)
{
	closedir(folder);
}

EXPORT int glob(const char *pattern, int flags, int (*failed)(const char *, int), glob_t *found)
{
	int result;

	if (flags & GLOB_ALTDIRFUNC || !strstr(pattern, "infiniband"))
		return NEXT(glob)(pattern, flags, failed, found);
	found->gl_opendir = folder_open;
	found->gl_readdir = folder_read;
	found->gl_closedir = folder_close;
	found->gl_stat = stat;
	found->gl_lstat = lstat;
	result = NEXT(glob)(pattern, flags | GLOB_ALTDIRFUNC, failed, found);
	found->gl_flags &= ~GLOB_ALTDIRFUNC;
	return result;
}

EXPORT int glob64(const char *pattern, int flags, int (*failed)(const char *, int), glob64_t *found)
{
	int result;

	if (flags & GLOB_ALTDIRFUNC || !strstr(pattern, "infiniband"))
		return NEXT(glob64)(pattern, flags, failed, found);
	found->gl_opendir = folder_open;
	found->gl_readdir = folder_read64;
	found->gl_closedir = folder_close;
	found->gl_stat = stat64;
	found->gl_lstat = lstat64;
	result = NEXT(glob64)(pattern, flags | GLOB_ALTDIRFUNC, failed, found);
	found->gl_flags &= ~GLOB_ALTDIRFUNC;
	return result;
}

/* The walk of this thread whose paths are cut; a program's function may begin another. */
struct walk {
	size_t cut;
	union {
		__ftw_func_t one;
		__ftw64_func_t one64;
		__nftw_func_t all;
		__nftw64_func_t all64;
	} tell;
};

static _Thread_local struct walk walk;

static int tell_one(const char *path, const struct stat *file, int kind)
{
	return walk.tell.one(path + walk.cut, file, kind);
}

static int tell_one64(const char *path, const struct stat64 *file, int kind)
{
	return walk.tell.one64(path + walk.cut, file, kind);
}

static int tell_all(const char *path, const struct stat *file, int kind, struct FTW *where)
{
	struct FTW cut = { where->base - (int)walk.cut, where->level };

	return walk.tell.all(path + walk.cut, file, kind, &cut);
}

static int tell_all64(const char *path, const struct stat64 *file, int kind, struct FTW *where)
{
	struct FTW cut = { where->base - (int)walk.cut, where->level };

	return walk.tell.all64(path + walk.cut, file, kind, &cut);
}

/* True where the path is ours: moved is where the walk goes. walk_end restores what walk_begin returns in outer. */
static bool walk_begin(const char *path, char to[PATH_MAX], struct walk *outer)
{
	*outer = walk;
	if (aw_paths_moved(path, to) == path)
		return false;
	walk.cut = aw_paths_root_len();
	return true;
}

static int walk_end(const struct walk *outer, int result)
{
	walk = *outer;
	return result;
}

EXPORT int ftw(const char *path, __ftw_func_t function, int fds)
{
	struct walk outer;
	char to[PATH_MAX];

	if (!walk_begin(path, to, &outer))
		return NEXT(ftw)(path, function, fds);
	walk.tell.one = function;
	return walk_end(&outer, NEXT(ftw)(to, tell_one, fds));
}

EXPORT int ftw64(const char *path, __ftw64_func_t function, int fds)
{
	struct walk outer;
	char to[PATH_MAX];

	if (!walk_begin(path, to, &outer))
		return NEXT(ftw64)(path, function, fds);
	walk.tell.one64 = function;
	return walk_end(&outer, NEXT(ftw64)(to, tell_one64, fds));
}

EXPORT int nftw(const char *path, __nftw_func_t function, int fds, int flags)
{
	struct walk outer;
	char to[PATH_MAX];

	if (!walk_begin(path, to, &outer))
		return NEXT(nftw)(path, function, fds, flags);
	walk.tell.all = function;
	return walk_end(&outer, NEXT(nftw)(to, tell_all, fds, flags));
}

EXPORT int nftw64(const char *path, __nftw64_func_t function, int fds, int flags)
{
	struct walk outer;
	char to[PATH_MAX];

	if (!walk_begin(path, to, &outer))
		return NEXT(nftw64)(path, function, fds, flags);
	walk.tell.all64 = function;
	return walk_end(&outer, NEXT(nftw64)(to, tell_all64, fds, flags));
}

/* Returns the paths to use instead, ended by NULL and from malloc, as what they point to; NULL where none is ours or memory is out. */
static char **paths_moved(char *const *paths)
{
	char to[PATH_MAX], **moved;
	size_t count = 0, ours = 0;

	for (; paths[count]; count++)
		ours += aw_paths_moved(paths[count], to) != paths[count];
	moved = ours ? calloc(count + 1, sizeof(*moved)) : NULL;
	for (size_t i = 0; moved && i < count; i++) {
		moved[i] = strdup(aw_paths_moved(paths[i], to));
		if (moved[i])
			continue;
		while (i-- > 0)
			free(moved[i]);
		free(moved);
		moved = NULL;
	}
	return moved;
}

static void paths_free(char **moved)
{
	for (char **each = moved; each && *each; each++)
		free(*each);
	free(moved);
}

EXPORT FTS *fts_open(char *const *paths, int options,
		     int (*order)(const FTSENT **, const FTSENT **))
{
	char **moved = paths_moved(paths);
	FTS *walked = NEXT(fts_open)(moved ? moved : paths, options, order);

	paths_free(moved);
	return walked;
}

EXPORT FTS64 *fts64_open(char *const *paths, int options,
			 int (*order)(const FTSENT64 **, const FTSENT64 **))
{
	char **moved = paths_moved(paths);
	FTS64 *walked = NEXT(fts64_open)(moved ? moved : paths, options, order);

	paths_free(moved);
	return walked;
}
