// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Leads a path of the device's files into the directory that ANYWARP_PATHS names.
#define _GNU_SOURCE
#include "cli/paths_preload.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

static bool begins(const char *path, const char *start)
{
	size_t len = strlen(start);

	return !strncmp(path, start, len) && (!path[len] || path[len] == '/');
}

const char *aw_paths_moved(const char *path, char to[PATH_MAX])
{
	const char *root;
	int len;

	if (!path || (!begins(path, "/dev/infiniband") && !begins(path, "/sys/class/infiniband")))
		return path;
	root = secure_getenv("ANYWARP_PATHS");
	if (!root || !*root)
		return path;
	len = snprintf(to, PATH_MAX, "%s%s", root, path);
	return len < PATH_MAX ? to : path;
}

/*
 * Functions of which libc keeps an older version: before glibc 2.36 dlsym finds that one, and the
 * older realpath refuses to allocate its result. Other machines have had one version from the start.
 */
static const struct {
	const char *name, *version;
} renewed[] = {
	{ "realpath", "GLIBC_2.3" },
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

/*
 * Replaces the file of an unused entry by an epoll set, whose read(2) is always EINVAL. If none can
 * be made, the file stays.
 */
int aw_paths_opened(int fd, const char *path)
{
	struct stat file;
	int set;

	if (fd < 0 || !path || !strstr(path, "/infiniband/") || !strstr(path, "/gid_attrs/") ||
	    fstat(fd, &file) != 0 || !S_ISREG(file.st_mode) || file.st_size != 0)
		return fd;
	set = epoll_create1(EPOLL_CLOEXEC);
	if (set >= 0) {
		(void)dup3(set, fd, fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0);
		close(set);
	}
	return fd;
}
