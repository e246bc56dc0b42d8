// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What happens when the program first uses a connected socket of iWARP mode: it is found out whether
// it becomes iWARP, and if so, MPA starts and the socket is swapped.
#ifndef XSOCK_PRELOAD_TOUCH_H
#define XSOCK_PRELOAD_TOUCH_H

#include <stdbool.h>

#include "xsock/preload/fdtab.h"
#include "xsock/preload/wait.h"

enum aw_touch {
	AW_TOUCH_READ, /* may wait as a read on fd would */
	AW_TOUCH_WRITE, /* decides now */
	AW_TOUCH_POLL, /* does not wait: fd may stay touchy */
	AW_TOUCH_CLOSE, /* decides now, by what is there */
};

/* The slow half of aw_touch. 0: go on with libc's call; -1 with errno. */
int aw_touch_slow(int fd, enum aw_touch kind, bool dontwait);

/* The same, waiting for a peer no longer than until then. */
int aw_touch_by(int fd, enum aw_touch kind, const struct aw_deadline *by);

/*
 * What of events fd is ready for. Without a time limit a signal ends the wait. With one it does not: what would be
 * decided by that may be wrong.
 */
short aw_touch_poll(int fd, short events, int timeout_ms);

static inline int aw_touch(int fd, enum aw_touch kind, bool dontwait)
{
	return aw_fdtab_is_touchy(fd) ? aw_touch_slow(fd, kind, dontwait) : 0;
}

/* The thread is about to sleep until something comes on fd, or connects it: NULL where fd is not touchy. */
struct aw_sock *aw_touch_sleep(int fd);
void aw_touch_woken(struct aw_sock *sock);

/* How much of the peer's question is waited for before a server's first octets go out plainly. */
#define AW_TOUCH_GRACE_MS 5

/* In settle.c from here on. */

/* fd is about to be closed, and its client, which has asked, has sent no Request yet. False: there is no proxy process to wait for it. */
bool aw_touch_farewell(int fd);

/*
 * Settles what is pending, as a write would, or connects, before two processes may use it. However many peers are
 * silent, they are waited for at the same time, as are those of count fds.
 */
void aw_touch_each(const int *fds, int count);
void aw_touch_pending(void);
/* The same where the child has but what an exec leaves it. */
void aw_touch_before_spawn(void);
/* The same where the child at once becomes another program. */
void aw_touch_before_shell(void);

/*
 * fd, or what there is from first to last, is about to be closed. The peer's MPA Request, left unread in a socket
 * that is closed, would make its end a reset: it is answered first, unless the program wants a reset. What another
 * thread is about to start is waited for.
 */
void aw_touch_closing(int fd);
void aw_touch_closing_range(unsigned first, unsigned last);
/* Waits for what is being started, of those whose process goes on. */
void aw_touch_await_range(unsigned first, unsigned last);

#endif
