// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds the table among a process's fds, and judges it.
#include "net/stat/stat_read.h"

#include "base/fresh.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINK_OF_TABLE "/memfd:" AW_STAT_NAME " (deleted)"
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define CHUNK 256u /* rows that one call reads */

#define STATE_MAX 6 /* of enum aw_ud_state, which has more than enum aw_qp_state */
#define WAITS_ALL (AW_STAT_WAITS_RECEIVE | AW_STAT_WAITS_ROOM | AW_STAT_WAITS_MEMORY)

static bool is_family(uint16_t family)
{
	return family == AF_UNSPEC || family == AF_INET || family == AF_INET6;
}

static bool is_sound(const union aw_stat_row *row)
{
	switch (row->any.kind) {
	case AW_STAT_DEVICE:
	case AW_STAT_CQ:
		return true;
	case AW_STAT_QP:
		return row->qp.type <= AW_STAT_UC && AW_STAT_QP_STATE(row->qp.now) <= STATE_MAX &&
		       row->qp.path <= AW_STAT_PATH_TLS_MEMORY &&
		       AW_STAT_QP_WAITS(row->qp.now) <= WAITS_ALL && is_family(row->qp.peer_family);
	case AW_STAT_LISTENER:
		return is_family(row->listener.family);
	default:
		return false;
	}
}

static bool read_at(int fd, void *into, size_t len, uint64_t at)
{
	return pread(fd, into, len, (off_t)at) == (ssize_t)len;
}

/* Makes room for CHUNK more rows, or for twice as many as there are. */
static bool make_room(struct aw_stat_copy *copy)
{
	uint32_t room = copy->count > CHUNK ? 2 * copy->count : 2 * CHUNK;
	union aw_stat_row *rows;

	if (copy->room - copy->count >= CHUNK)
		return true;
	rows = realloc(copy->rows, room * sizeof(*rows));
	if (!rows)
		return false;
	copy->rows = rows;
	copy->room = room;
	return true;
}

static bool read_rows(int fd, struct aw_stat_copy *copy)
{
	for (uint32_t first = 0; first < copy->head.end; first += CHUNK) {
		uint32_t left = copy->head.end - first, count = left < CHUNK ? left : CHUNK;

		if (!make_room(copy))
			return false;
		union aw_stat_row *chunk = copy->rows + copy->count;

		if (!read_at(fd, chunk, count * sizeof(*chunk),
			     AW_STAT_HEAD_LEN + (uint64_t)first * AW_STAT_ROW_LEN))
			return false;
		for (uint32_t i = 0; i < count; i++)
			if (is_sound(&chunk[i]))
				copy->rows[copy->count++] = chunk[i];
	}
	return true;
}

static bool has_table(int fd, struct aw_stat_head *head)
{
	struct stat file;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &file) != 0 ||
	    file.st_size != (off_t)AW_STAT_FILE_LEN)
		return false;
	return read_at(fd, head, sizeof(*head), 0) && head->magic == AW_STAT_MAGIC &&
	       head->layout == AW_STAT_LAYOUT && head->end <= AW_STAT_ROWS;
}

enum aw_stat_result aw_stat_read_fd(int fd, struct aw_stat_copy *copy)
{
	*copy = (struct aw_stat_copy){ 0 };
	if (!has_table(fd, &copy->head))
		return AW_STAT_STRANGE;
	if (read_rows(fd, copy))
		return AW_STAT_READ;
	free(copy->rows);
	copy->rows = NULL;
	return AW_STAT_FAILED;
}

/*
 * The name may be that of any file. O_PATH opens it without an effect on it, and only a plain file is opened to be
 * read. AW_STAT_ABSENT: the process has closed it, or has ended.
 */
static enum aw_stat_result open_table(DIR *fds, const char *name, int flags, int *fd)
{
	int path = openat(dirfd(fds), name, O_PATH | O_CLOEXEC), opened = -1;
	struct aw_stat_head head;
	struct stat file;
	char again[32];

	if (path < 0)
		return errno == ENOENT || errno == ESRCH ? AW_STAT_ABSENT : AW_STAT_STRANGE;
	if (fstat(path, &file) == 0 && S_ISREG(file.st_mode)) {
		snprintf(again, sizeof(again), "/proc/self/fd/%d", path);
		opened = open(again, flags | O_NONBLOCK | O_CLOEXEC);
	}
	close(path);
	if (opened < 0)
		return AW_STAT_STRANGE;
	if (!has_table(opened, &head)) {
		close(opened);
		return AW_STAT_STRANGE;
	}
	*fd = opened;
	return AW_STAT_READ;
}

/* A process has one table at most; the first one that is right is taken. */
static enum aw_stat_result open_among(DIR *fds, int flags, int *fd, int *number)
{
	enum aw_stat_result result = AW_STAT_ABSENT, found;
	struct dirent *entry;

	while (result != AW_STAT_READ && (entry = readdir(fds))) {
		char target[64];
		ssize_t len = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target));

		if (len != (ssize_t)strlen(LINK_OF_TABLE) ||
		    memcmp(target, LINK_OF_TABLE, (size_t)len) != 0)
			continue;
		found = open_table(fds, entry->d_name, flags, fd);
		if (found == AW_STAT_ABSENT)
			continue;
		result = found;
		*number = atoi(entry->d_name);
	}
	return result;
}

static enum aw_stat_result find_table_fd(pid_t pid, int flags, int *fd, int *number)
{
	enum aw_stat_result result;
	char path[32];
	DIR *fds;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	fds = opendir(path);
	if (!fds)
		return errno == ENOENT || errno == ESRCH ? AW_STAT_GONE : AW_STAT_REFUSED;
	result = open_among(fds, flags, fd, number);
	err = errno;
	closedir(fds);
	errno = err;
	return result;
}

enum aw_stat_result aw_stat_open(pid_t pid, int flags, int *fd, int *number)
{
	enum aw_stat_result result = find_table_fd(pid, flags, fd, number);
	static int wasted;
	int pauses = 0;

	while (result == AW_STAT_STRANGE && aw_fresh_pause(&pauses, wasted))
		result = find_table_fd(pid, flags, fd, number);
	wasted += result == AW_STAT_STRANGE ? pauses : 0;
	return result;
}

enum aw_stat_result aw_stat_read(pid_t pid, struct aw_stat_copy *copy)
{
	enum aw_stat_result result;
	int fd, number, err;

	*copy = (struct aw_stat_copy){ 0 };
	result = aw_stat_open(pid, O_RDONLY, &fd, &number);
	if (result != AW_STAT_READ)
		return result;
	result = aw_stat_read_fd(fd, copy);
	err = errno;
	close(fd);
	errno = err;
	return result;
}
