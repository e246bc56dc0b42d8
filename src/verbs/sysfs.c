// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Reading one-line files of sysfs, for programs and libraries that use libibverbs for it. Nothing
// in anywarp depends on sysfs: the device is not there.
#define _GNU_SOURCE // secure_getenv

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs/unlisted.h"

static pthread_once_t sysfs_path_once = PTHREAD_ONCE_INIT;
static char sysfs_path[IBV_SYSFS_PATH_MAX] = "/sys";

static void sysfs_path_init(void)
{
	const char *path = secure_getenv("SYSFS_PATH");
	size_t len = path ? strlen(path) : 0;

	while (len && path[len - 1] == '/')
		len--;
	if (!len || len >= sizeof(sysfs_path))
		return;
	memcpy(sysfs_path, path, len);
	sysfs_path[len] = '\0';
}

// The mount point of sysfs: $SYSFS_PATH or /sys. The library owns the string for the process's
// life.
const char *ibv_get_sysfs_path(void)
{
	pthread_once(&sysfs_path_once, sysfs_path_init);
	return sysfs_path;
}

// Reads dir/file into buf as a string without its newline. Returns its length, or -1 with errno:
// ENOSPC when size bytes do not hold it.
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	int fd, saved;
	ssize_t len;
	char *path;

	// On the heap: a small stack has no room for it.
	if (asprintf(&path, "%s/%s", dir, file) < 0)
		return -1;
	if (size > INT_MAX)
		size = INT_MAX;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	if (fd < 0)
		return -1;
	do
		len = read(fd, buf, size);
	while (len < 0 && errno == EINTR);
	saved = errno;
	close(fd);
	errno = saved;
	if (len < 0)
		return -1;
	if (len > 0 && buf[len - 1] == '\n')
		len--;
	if ((size_t)len >= size) {
		errno = ENOSPC;
		return -1;
	}
	buf[len] = '\0';
	return (int)len;
}
