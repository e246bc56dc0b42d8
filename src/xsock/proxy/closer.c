// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A socket with SO_LINGER is closed by a thread of its own: the option is the program's, which may have the socket
// still. A file on a file system in user space may wait, too, and so may what is on its way in an AF_UNIX socket: these
// cannot be told from others (docs/security.md).
#include "xsock/proxy/closer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#define THREADS_MAX \
	16 /* while so many peers do not acknowledge, SO_LINGER is taken off the next socket */

static _Atomic(int) threads;

static bool may_wait(int fd)
{
	struct linger linger = { 0 };
	socklen_t len = sizeof(linger);

	return getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len) == 0 && linger.l_onoff &&
	       linger.l_linger > 0;
}

static void *close_one(void *fd)
{
	close((int)(intptr_t)fd);
	atomic_fetch_sub(&threads, 1);
	return NULL;
}

static bool close_aside(int fd)
{
	pthread_t thread;

	if (atomic_fetch_add(&threads, 1) < THREADS_MAX &&
	    pthread_create(&thread, NULL, close_one, (void *)(intptr_t)fd) == 0) {
		pthread_detach(thread);
		return true;
	}
	atomic_fetch_sub(&threads, 1);
	return false;
}

void aw_closer_close(int fd)
{
	static const struct linger off;

	if (fd >= 0 && may_wait(fd)) {
		if (close_aside(fd))
			return;
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
	}
	close(fd);
}
