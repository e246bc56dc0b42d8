// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Asks the kernel, by sock_diag(7), for the TCP sockets of a process, for 'anywarp stat'.
#define _GNU_SOURCE // setns
#include "cli/stat.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void take_conn(const struct aw_sockdiag_conn *conn, void *arg)
{
	struct stat_sockets *sockets = arg;
	struct aw_sockdiag_conn *conns;

	if (sockets->count == sockets->room && !sockets->is_short) {
		sockets->room = sockets->room ? 2 * sockets->room : 256;
		conns = realloc(sockets->conns, sockets->room * sizeof(*conns));
		sockets->is_short = !conns;
		if (conns)
			sockets->conns = conns;
	}
	if (!sockets->is_short)
		sockets->conns[sockets->count++] = *conn;
}

static int compare(const void *a, const void *b)
{
	const struct aw_sockdiag_conn *left = a, *right = b;

	return (left->ino > right->ino) - (left->ino < right->ino);
}

static void ask_kernel(struct stat_sockets *sockets)
{
	(void)aw_sockdiag_each(false, take_conn, sockets);
	(void)aw_sockdiag_each(true, take_conn, sockets);
	if (sockets->count > 0)
		qsort(sockets->conns, sockets->count, sizeof(*sockets->conns), compare);
}

void aw_stat_sockets_load(struct stat_sockets *sockets, pid_t pid)
{
	struct stat ours, theirs;
	int there, own;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	if (stat("/proc/self/ns/net", &ours) != 0 || stat(path, &theirs) != 0)
		theirs = (struct stat){ 0 };
	if (sockets->loaded && sockets->dev == theirs.st_dev && sockets->ino == theirs.st_ino)
		return;
	sockets->count = 0;
	sockets->loaded = true;
	sockets->dev = theirs.st_dev;
	sockets->ino = theirs.st_ino;
	if (!theirs.st_ino)
		return;
	if (ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino) {
		ask_kernel(sockets);
		return;
	}

	// Only root may enter another network namespace. Others get nothing.
	there = open(path, O_RDONLY | O_CLOEXEC);
	own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (there >= 0 && own >= 0 && setns(there, CLONE_NEWNET) == 0) {
		ask_kernel(sockets);
		if (setns(own, CLONE_NEWNET) != 0)
			fprintf(stderr,
				STAT_WHO ": cannot return from the network namespace %s: %s\n",
				path, strerror(errno));
	}
	if (there >= 0)
		close(there);
	if (own >= 0)
		close(own);
}

const struct aw_sockdiag_conn *aw_stat_sockets_find(const struct stat_sockets *sockets, pid_t pid,
						    int fd)
{
	struct aw_sockdiag_conn wanted = { 0 };
	char path[48];

	if (fd < 0 || sockets->count == 0)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	if (!aw_sockdiag_fd(AT_FDCWD, path, &wanted.ino))
		return NULL;
	return bsearch(&wanted, sockets->conns, sockets->count, sizeof(wanted), compare);
}

void aw_stat_sockets_fini(struct stat_sockets *sockets)
{
	free(sockets->conns);
	*sockets = (struct stat_sockets){ 0 };
}
