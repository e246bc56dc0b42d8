// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What happens when the program first uses a connected socket of iWARP mode: it is found out whether
// it becomes iWARP, and if so, MPA starts and the socket is swapped.
#ifndef XSOCK_PRELOAD_FIRST_IO_H
#define XSOCK_PRELOAD_FIRST_IO_H

#include <stdbool.h>

#include "xsock/preload/wait.h"
#include "xsock/process/fdtab.h"

enum aw_first_io {
	AW_FIRST_READ, /* may wait as a read on fd would */
	AW_FIRST_WRITE, /* decides now */
	AW_FIRST_POLL, /* does not wait: fd may stay undecided */
	AW_FIRST_CLOSE, /* decides now, by what is there */
};

/* The slow half of aw_first_io. 0: go on with libc's call; -1 with errno. */
int aw_first_io_slow(int fd, enum aw_first_io kind, bool dontwait);

/* The same, waiting for a peer no longer than until then. */
int aw_first_io_by(int fd, enum aw_first_io kind, const struct aw_deadline *by);

/*
 * What of events fd is ready for. Without a time limit a signal ends the wait. With one it does not: what would be
 * decided by that may be wrong.
 */
short aw_first_io_poll(int fd, short events, int timeout_ms);

static inline int aw_first_io(int fd, enum aw_first_io kind, bool dontwait)
{
	return aw_fdtab_is_undecided(fd) ? aw_first_io_slow(fd, kind, dontwait) : 0;
}

/* The thread is about to sleep until something comes on fd, or connects it: NULL where fd is not undecided. */
struct aw_sock *aw_first_io_sleep(int fd);
void aw_first_io_woken(struct aw_sock *sock);

/* How much of the peer's question is waited for before a server's first bytes go out plainly. */
#define AW_FIRST_GRACE_MS 5

/* In settle.c from here on. */

/* fd is about to be closed, and its client, which has asked, has sent no Request yet. False: there is no proxy process to wait for it. */
bool aw_farewell_request(int fd);

/*
 * Settles what is pending, as a write would, or connects, before two processes may use it. However many peers are
 * silent, they are waited for at the same time, as are those of count fds.
 */
void aw_first_io_each(const int *fds, int count);
void aw_first_io_pending(void);
/* The same where the child has but what an exec leaves it. */
void aw_first_io_before_spawn(void);
/* The same where the child at once becomes another program. */
void aw_first_io_before_shell(void);

/*
 * fd, or what there is from first to last, is about to be closed. The peer's MPA Request, left unread in a socket
 * that is closed, would make its end a reset: it is answered first, unless the program wants a reset. What another
 * thread is about to start is waited for.
 */
void aw_first_io_closing(int fd);
void aw_first_io_closing_range(unsigned first, unsigned last);
/* Waits for what is being started, of those whose process goes on. */
void aw_first_io_await_range(unsigned first, unsigned last);

#endif
