// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds the arena of another process among its fds and reads it. The process that made that file
// may write to it at any time, and may be hostile: the file is read by pread(), each word once, and
// is not mapped, so that a hole in it costs no memory. A word counts only where the process has a
// TCP socket with that inode.
#include "xsock/framed/census.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fresh.h"
#include "xsock/framed/layout.h"

#define LINK_OF_ARENA "/memfd:" AW_ARENA_NAME " (deleted)"
#define CHUNK 1024u /* entries that one call reads */
#define STATE_LISTEN 10 /* the kernel's number */

struct census {
	DIR *fds; /* /proc/PID/fd */
	int arena; /* -1: none */
	size_t count;
	struct aw_census_record *records; /* sorted by inode */
};

/* A copy of the words of an entry. */
struct copied_entry {
	uint64_t word, ino;
};

_Static_assert(sizeof(struct copied_entry) == sizeof(struct aw_arena_entry) &&
		       offsetof(struct copied_entry, ino) == offsetof(struct aw_arena_entry, ino),
	       "an entry is two words");

/*
 * Opens the arena behind the name in /proc/PID/fd. The name may be that of any file: O_PATH opens
 * it without an effect on it, and only a regular file of the right size is then opened for reading.
 * -1: the process has closed it, or it is no arena of this build, and *is_strange is set.
 */
static int open_arena(DIR *fds, const char *name, bool *is_strange)
{
	int path = openat(dirfd(fds), name, O_PATH | O_CLOEXEC), fd = -1;
	struct stat file;
	char again[32];

	if (path < 0)
		return -1;
	if (fstat(path, &file) == 0 && S_ISREG(file.st_mode) &&
	    file.st_size == (off_t)aw_arena_size()) {
		snprintf(again, sizeof(again), "/proc/self/fd/%d", path);
		fd = open(again, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	}
	close(path);
	if (fd >= 0 && aw_arena_is_one(fd, fcntl(fd, F_GET_SEALS), &file))
		return fd;
	*is_strange = true;
	if (fd >= 0)
		close(fd);
	return -1;
}

/*
 * Finds the arena among the fds. A process has at most one; the first valid one is taken. False: there is none, but a
 * strange file of that name.
 */
static bool look_for_arena(struct census *census)
{
	bool is_strange = false;
	struct dirent *entry;
	char target[64];

	rewinddir(census->fds);
	while (census->arena < 0 && (entry = readdir(census->fds))) {
		ssize_t len = readlinkat(dirfd(census->fds), entry->d_name, target, sizeof(target));

		if (len != strlen(LINK_OF_ARENA) || memcmp(target, LINK_OF_ARENA, (size_t)len) != 0)
			continue;
		census->arena = open_arena(census->fds, entry->d_name, &is_strange);
	}
	return census->arena >= 0 || !is_strange;
}

static int compare_inodes(const void *a, const void *b)
{
	const struct aw_census_record *left = a, *right = b;

	return (left->conn.ino > right->conn.ino) - (left->conn.ino < right->conn.ino);
}

static bool read_entries(struct census *census)
{
	struct copied_entry chunk[CHUNK];

	census->records = calloc(AW_ARENA_SLOTS, sizeof(*census->records));
	if (!census->records)
		return false;
	for (unsigned first = 0; first < AW_ARENA_SLOTS; first += CHUNK) {
		size_t at = offsetof(struct aw_arena_table, entries) + first * sizeof(chunk[0]);

		if (pread(census->arena, chunk, sizeof(chunk), (off_t)at) != sizeof(chunk))
			return false;
		for (unsigned i = 0; i < CHUNK; i++) {
			size_t mode_at =
				aw_arena_slot_at(first + i) + offsetof(struct aw_slot, mode);
			uint8_t mode = AW_XS_OFF;

			if (!(chunk[i].word & AW_ENTRY_HOLDERS) || chunk[i].word & AW_ENTRY_FRESH ||
			    !chunk[i].ino)
				continue;
			if (pread(census->arena, &mode, 1, (off_t)mode_at) != 1 ||
			    !aw_xs_mode_is_carried((enum aw_xs_mode)mode))
				mode = AW_XS_OFF;
			census->records[census->count++] = (struct aw_census_record){
				.mode = (enum aw_xs_mode)mode,
				.conn.ino = chunk[i].ino,
			};
		}
	}
	qsort(census->records, census->count, sizeof(*census->records), compare_inodes);
	return true;
}

static struct aw_census_record *find_record(const struct census *census, uint64_t ino)
{
	const struct aw_census_record wanted = { .conn.ino = ino };

	return bsearch(&wanted, census->records, census->count, sizeof(wanted), compare_inodes);
}

static void note_conn(const struct aw_sockdiag_conn *conn, void *arg)
{
	struct aw_census_record *record = find_record(arg, conn->ino);

	if (!record)
		return;
	record->is_known = true;
	record->conn = *conn;
}

static bool dump_conns(struct census *census)
{
	bool v4 = aw_sockdiag_each(false, note_conn, census);
	bool v6 = aw_sockdiag_each(true, note_conn, census);

	return v4 || v6; /* a kernel may have only one of them */
}

static enum aw_census_result find_conns(struct census *census, pid_t pid)
{
	enum aw_census_result result = AW_CENSUS_ELSEWHERE;
	struct stat ours, theirs;
	int namespace = -1, own;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	if (stat("/proc/self/ns/net", &ours) == 0 && stat(path, &theirs) == 0) {
		if (ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino)
			return dump_conns(census) ? AW_CENSUS_WHOLE : AW_CENSUS_FAILED;
		namespace = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (namespace < 0) /* it may not be read, or the process has ended */
		return errno == ENOENT || errno == ESRCH ? AW_CENSUS_GONE : AW_CENSUS_ELSEWHERE;

	own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (own >= 0 && setns(namespace, CLONE_NEWNET) == 0) {
		result = dump_conns(census) ? AW_CENSUS_WHOLE : AW_CENSUS_FAILED;
		(void)setns(own, CLONE_NEWNET);
	}
	if (own >= 0)
		close(own);
	close(namespace);
	return result;
}

static void visit_fds(const struct census *census, pid_t pid, aw_census_fn *use, void *arg)
{
	const struct aw_census_record *record;
	struct dirent *entry;
	uint64_t ino;

	rewinddir(census->fds);
	while ((entry = readdir(census->fds))) {
		if (!aw_sockdiag_fd(dirfd(census->fds), entry->d_name, &ino))
			continue;
		record = find_record(census, ino);
		if (!record || (record->is_known && record->conn.state == STATE_LISTEN))
			continue;
		/* The dump lacks sockets that are closed, or in another network namespace. */
		if (!record->is_known) {
			char path[64], protocol[16] = "";

			snprintf(path, sizeof(path), "/proc/%d/fd/%.16s", (int)pid, entry->d_name);
			if (getxattr(path, "system.sockprotoname", protocol,
				     sizeof(protocol) - 1) <= 0 ||
			    (strcmp(protocol, "TCP") != 0 && strcmp(protocol, "TCPv6") != 0))
				continue;
		}
		use(atoi(entry->d_name), record, arg);
	}
}

static enum aw_census_result census_read(struct census *census, pid_t pid, aw_census_fn *use,
					 void *arg)
{
	bool is_right = look_for_arena(census);
	enum aw_census_result result;
	static int wasted;
	int pauses = 0;

	while (!is_right && aw_fresh_pause(&pauses, wasted))
		is_right = look_for_arena(census);
	wasted += is_right ? 0 : pauses;
	if (census->arena < 0)
		return is_right ? AW_CENSUS_WHOLE : AW_CENSUS_STRANGE;

	if (!read_entries(census))
		return AW_CENSUS_FAILED;
	if (census->count == 0)
		return AW_CENSUS_WHOLE;
	result = find_conns(census, pid);
	if (result == AW_CENSUS_WHOLE || result == AW_CENSUS_ELSEWHERE)
		visit_fds(census, pid, use, arg);
	return result;
}

enum aw_census_result aw_census_take(pid_t pid, aw_census_fn *use, void *arg)
{
	struct census census = { .arena = -1 };
	enum aw_census_result result;
	char path[32];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	census.fds = opendir(path);
	if (!census.fds)
		return errno == ENOENT || errno == ESRCH ? AW_CENSUS_GONE : AW_CENSUS_REFUSED;
	result = census_read(&census, pid, use, arg);
	err = errno;
	free(census.records);
	if (census.arena >= 0)
		close(census.arena);
	closedir(census.fds);
	errno = err;
	return result;
}
