// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Leads a path of the device's files into the directory that ANYWARP_PATHS names, and back.
#define _GNU_SOURCE
#include "cli/paths_preload.h"
#include "cli/paths_tree.h"

#include "base/runtime.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A class of the kernel's RDMA begins so: infiniband, infiniband_verbs, infiniband_mad. A machine's own devices are hidden. */
#define CLASSES "/sys/class/infiniband"

static __attribute__((constructor)) void library_begin(void)
{
	aw_runtime_leave();
}

static bool begins(const char *path, const char *start)
{
	size_t len = strlen(start);

	return !strncmp(path, start, len) && (!path[len] || path[len] == '/');
}

static bool is_ours(const char *path)
{
	const char *class = path + strlen(CLASSES);

	if (!strncmp(path, CLASSES, strlen(CLASSES)))
		return !*class || *class == '/' || *class == '_';
	return begins(path, "/dev/infiniband") || begins(path, PATHS_PARENT);
}

/* A path that is_ours accepts has one of the two in it: all others cost no more than this. */
static bool may_be_ours(const char *path)
{
	return strstr(path, "infiniband") || strstr(path, PATHS_PARENT_NAME);
}

static const char *root_of_files(void)
{
	const char *root = secure_getenv("ANYWARP_PATHS");

	return root && *root == '/' ? root : NULL;
}

size_t aw_paths_root_len(void)
{
	const char *root = root_of_files();

	return root ? strlen(root) : 0;
}

/* Writes the directory in which a relative path begins. False: it is not known. */
static bool start_find(int dir, char start[PATH_MAX])
{
	char link[32];
	ssize_t len;

	if (dir == AT_FDCWD)
		return NEXT(getcwd)(start, PATH_MAX);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	len = NEXT(readlink)(link, start, PATH_MAX - 1);
	if (len <= 0 || *start != '/')
		return false;
	start[len] = '\0';
	return true;
}

/*
 * Appends the path's components to `whole` up to where it names a file of ours; from there on the kernel resolves links and dots.
 * True, with *rest: what is left of the path.
 */
static bool walk_to_ours(char whole[PATH_MAX], const char *path, const char **rest)
{
	size_t len = strcmp(whole, "/") ? strlen(whole) : 0;

	for (const char *at = path; *at;) {
		size_t part = strcspn(at, "/");

		if (part == 2 && !strncmp(at, "..", 2)) {
			while (len && whole[--len] != '/')
				;
		} else if (part && !(part == 1 && *at == '.')) {
			if (len + 1 + part >= PATH_MAX)
				return false;
			whole[len++] = '/';
			memcpy(whole + len, at, part);
			len += part;
		}
		whole[len] = '\0';
		at += part;
		if (part && is_ours(whole)) {
			*rest = at;
			return true;
		}
		at += *at == '/';
	}
	return false;
}

const char *aw_paths_moved_at(int dir, const char *path, char to[PATH_MAX])
{
	const char *root, *rest;
	char whole[PATH_MAX] = "";
	int len;

	if (!path || !may_be_ours(path))
		return path;
	root = root_of_files();
	if (!root || (*path != '/' && !start_find(dir, whole)) || !walk_to_ours(whole, path, &rest))
		return path;
	len = snprintf(to, PATH_MAX, "%s%s%s", root, whole, rest);
	return len < PATH_MAX ? to : path;
}

const char *aw_paths_moved(const char *path, char to[PATH_MAX])
{
	return aw_paths_moved_at(AT_FDCWD, path, to);
}

char *aw_paths_shown(char *path)
{
	const char *root = path ? root_of_files() : NULL;
	size_t len;

	if (!root || !begins(path, root))
		return path;
	len = strlen(root);
	if (path[len] == '/')
		memmove(path, path + len, strlen(path + len) + 1);
	return path;
}

/*
 * Functions of which libc keeps an older version: before glibc 2.36 dlsym finds that one, and the
 * older realpath refuses to allocate its result, the older glob and nftw lack flags. Other machines have had one version from
 * the start.
 */
static const struct {
	const char *name, *version;
} renewed[] = {
	{ "glob", "GLIBC_2.27" },    { "glob64", "GLIBC_2.27" },  { "nftw", "GLIBC_2.3.3" },
	{ "nftw64", "GLIBC_2.3.3" }, { "realpath", "GLIBC_2.3" },
};

void *aw_paths_next(const char *name)
{
	void *found = NULL;

	for (size_t i = 0; i < sizeof(renewed) / sizeof(renewed[0]); i++)
		if (!strcmp(name, renewed[i].name))
			found = dlvsym(RTLD_NEXT, name, renewed[i].version);
	if (!found)
		found = dlsym(RTLD_NEXT, name);
	if (!found)
		abort(); /* libc lacks a call that the program was linked with */
	return found;
}

/* Returns an fd with the text, at its beginning, or -1. */
static int text_open(const char *text)
{
	int fd = memfd_create("anywarp-text", MFD_CLOEXEC);
	size_t len = strlen(text);

	if (fd < 0)
		return -1;
	if (write(fd, text, len) == (ssize_t)len && lseek(fd, 0, SEEK_SET) == 0)
		return fd;
	close(fd);
	return -1;
}

/* The text of the file behind fd as it is now, or an epoll set, whose read(2) is always EINVAL; -1: the file stays. */
static int live_open(int fd, const struct stat *file)
{
	const char *root = root_of_files();
	char link[32], name[PATH_MAX], text[PATHS_TEXT_MAX];
	size_t before;
	ssize_t len;

	if (file->st_size == 0)
		return epoll_create1(EPOLL_CLOEXEC);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = NEXT(readlink)(link, name, sizeof(name) - 1);
	if (!root || len <= 0)
		return -1;
	name[len] = '\0';
	before = strlen(root) + strlen(PATHS_PORT "/");
	if ((size_t)len <= before || strncmp(name, root, strlen(root)) != 0 ||
	    !aw_paths_live(root, name + before, text))
		return -1;
	return text_open(text);
}

int aw_paths_opened(int fd, const char *path)
{
	struct stat file;
	int live;

	if (fd < 0 || !path || (*path == '/' && !may_be_ours(path)) || fstat(fd, &file) != 0 ||
	    !S_ISREG(file.st_mode) || (file.st_mode & 07777) != PATHS_LIVE ||
	    file.st_uid != geteuid())
		return fd;
	live = live_open(fd, &file);
	if (live >= 0) {
		(void)dup3(live, fd, fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0);
		close(live);
	}
	return fd;
}
