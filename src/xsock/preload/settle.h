// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Settles many undecided sockets at once: before two processes may use them, before a spawned
// program does, and before they are closed. No client is waited for. Callers hold no lock.
#ifndef XSOCK_PRELOAD_SETTLE_H
#define XSOCK_PRELOAD_SETTLE_H

#include <stdbool.h>

/* Begins those of count fds whose peers' bytes have come. */
void aw_settle_fds(const int *fds, int count);
/*
 * Begins the connections that the process makes before a fork, or a spawn, whose child has only those fds that an exec leaves open.
 * Those that it has accepted are begun by the process that makes their first I/O.
 */
void aw_settle_all(void);
void aw_settle_before_spawn(void);
/*
 * Bridges all connections, or those that an exec leaves open, before another program without this library has them. system(3) and
 * popen(3) are such programs, too, because their child becomes a shell at once.
 */
void aw_settle_for_stranger(bool surviving);
/* The process may become another user, who has no memory of its slots: begins or hands over what relatives may begin, too. */
void aw_settle_before_user(void);

/*
 * The caller is about to close fd, or to end the process with all its fds. If the kernel closed a
 * socket with an unread MPA Request, the peer's connection would end by a reset: the Request is
 * answered first, unless the program wants a reset. Both wait until no other thread starts such an
 * fd.
 */
void aw_settle_before_close(int fd);
void aw_settle_before_end(void);
/* The same before an exec, which may fail. */
void aw_settle_before_exec(void);

#endif
