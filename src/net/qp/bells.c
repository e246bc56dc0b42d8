// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The pipes. The other process names them, so the initiator opens nothing but a pipe, and that one.
#include "net/qp/bells.h"

#include "net/base/io_now.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_LEN 64
#define PIPE_BYTES 4096 /* the least; users may have only so much in pipes */
#define DRAIN_MAX 4096 /* bells that one read takes: a peer may have made the pipe larger */

static _Atomic uint32_t open_bells; /* of this process; relaxed: only the number matters */

uint32_t aw_bells_places(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / AW_BELLS_SHARE > AW_BELLS_MAX)
		return AW_BELLS_MAX;
	return (uint32_t)(limit.rlim_cur / AW_BELLS_SHARE);
}

static bool take_place(void)
{
	if (atomic_fetch_add_explicit(&open_bells, 1, memory_order_relaxed) < aw_bells_places())
		return true;
	atomic_fetch_sub_explicit(&open_bells, 1, memory_order_relaxed);
	return false;
}

/* Closes what was opened, unless both were. */
static bool settle(struct aw_bells *bells)
{
	bool both = bells->own >= 0 && bells->peers >= 0;

	if (both)
		return true;
	if (bells->own >= 0)
		aw_close_now(bells->own);
	if (bells->peers >= 0)
		aw_close_now(bells->peers);
	bells->own = bells->peers = -1;
	atomic_fetch_sub_explicit(&open_bells, 1, memory_order_relaxed);
	return false;
}

/* A pipe behind one fd, for reading and writing. -1 when there is none to be had. */
static int make_pipe(struct aw_bells_name *name)
{
	char path[PATH_LEN];
	struct stat st;
	int ends[2], fd;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
	fd = aw_open_now(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	aw_close_now(ends[0]);
	aw_close_now(ends[1]);
	if (fd < 0)
		return -1;
	if (fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES) < 0 || fstat(fd, &st) != 0) {
		aw_close_now(fd);
		return -1;
	}
	*name = (struct aw_bells_name){ .fd = (uint32_t)fd, .inode = st.st_ino };
	return fd;
}

void aw_bells_make(struct aw_bells *bells, struct aw_bells_name names[2])
{
	*bells = (struct aw_bells){ -1, -1 };
	if (!take_place())
		return;
	bells->own = make_pipe(&names[0]);
	bells->peers = bells->own >= 0 ? make_pipe(&names[1]) : -1;
	settle(bells);
}

/* The link is read of an O_PATH fd, whose file cannot be exchanged any more. Neither file nor file system is asked. */
static int open_pipe(uint32_t pid, const struct aw_bells_name *name)
{
	char path[PATH_LEN], expected[PATH_LEN], link[PATH_LEN];
	int len = snprintf(expected, sizeof(expected), "pipe:[%" PRIu64 "]", name->inode);
	int place, fd = -1;

	snprintf(path, sizeof(path), "/proc/%u/fd/%u", pid, name->fd);
	place = aw_open_now(path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
	if (readlink(path, link, sizeof(link)) == len && memcmp(link, expected, (size_t)len) == 0)
		fd = aw_open_now(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	aw_close_now(place);
	return fd;
}

/*
 * A process can keep a pipe's lock for as long as it likes, by a write(2) from memory whose pages a program supplies (FUSE,
 * userfaultfd(2)); a read or write of another process then waits, O_NONBLOCK or not. A process of this user and PID namespace could
 * as well stop this one by a signal; one in a container that this process only looks into could not.
 */
static bool is_in_own_namespace(uint32_t pid)
{
	char path[PATH_LEN], own[PATH_LEN], other[PATH_LEN];
	ssize_t own_len = readlink("/proc/self/ns/pid", own, sizeof(own));

	snprintf(path, sizeof(path), "/proc/%u/ns/pid", pid);
	return own_len > 0 && readlink(path, other, sizeof(other)) == own_len &&
	       memcmp(own, other, (size_t)own_len) == 0;
}

bool aw_bells_open(struct aw_bells *bells, uint32_t pid, const struct aw_bells_name names[2])
{
	*bells = (struct aw_bells){ -1, -1 };
	if (!is_in_own_namespace(pid) || !take_place())
		return false;
	bells->own = open_pipe(pid, &names[1]);
	bells->peers = bells->own >= 0 ? open_pipe(pid, &names[0]) : -1;
	return settle(bells);
}

void aw_bells_close(struct aw_bells *bells)
{
	if (bells->own < 0)
		return;
	aw_close_now(bells->own);
	aw_close_now(bells->peers);
	*bells = (struct aw_bells){ -1, -1 };
	atomic_fetch_sub_explicit(&open_bells, 1, memory_order_relaxed);
}

void aw_bells_ring(const struct aw_bells *bells)
{
	uint8_t bell = 0;
	ssize_t written = aw_write_now(bells->peers, &bell, sizeof(bell));

	(void)written;
}

bool aw_bells_drain(const struct aw_bells *bells)
{
	uint8_t rung[DRAIN_MAX];

	return aw_read_now(bells->own, rung, sizeof(rung)) > 0;
}
