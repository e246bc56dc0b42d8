// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A thread of its own closes a socket that has SO_LINGER: the option is the program's, and the
// program may still have the socket open. The close of a file on a user-space file system, or of an
// AF_UNIX socket with fds queued, may wait, too; the proxy process cannot tell such fds from others
// (docs/security.md).
#include "xsock/proxy/closer.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"

#define THREADS_MAX \
	16 /* while so many threads wait in close, the next socket loses its SO_LINGER */

static _Atomic(int) threads;

static void *closer_run(void *fd)
{
	close((int)(intptr_t)fd);
	atomic_fetch_sub(&threads, 1);
	return NULL;
}

void aw_closer_close(int fd)
{
	static const struct linger off;
	struct linger linger = { 0 };
	socklen_t len = sizeof(linger);
	bool may_wait = fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len) == 0 &&
			linger.l_onoff && linger.l_linger > 0;

	if (may_wait) {
		if (atomic_fetch_add(&threads, 1) < THREADS_MAX &&
		    aw_thread_start(closer_run, (void *)(intptr_t)fd) == 0)
			return;
		atomic_fetch_sub(&threads, 1);
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
	}
	close(fd);
}
