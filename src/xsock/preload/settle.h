// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Settles many undecided sockets at once: before two processes may use them, before a spawned
// program does, and before they are closed. Callers hold no lock.
#ifndef XSOCK_PRELOAD_SETTLE_H
#define XSOCK_PRELOAD_SETTLE_H

/*
 * aw_settle_all decides all undecided sockets before two processes may use them: a pending one as
 * by a write, a connecting one when it is connected. aw_settle_fds does so for count fds, as by a
 * write. All peers are waited for until one deadline, so that many silent peers cost no more time
 * than one.
 */
void aw_settle_fds(const int *fds, int count);
void aw_settle_all(void);
/* Decides all sockets before a spawn, whose child has only those fds that an exec leaves open. */
void aw_settle_before_spawn(void);
/*
 * Decides all sockets, and bridges those that are framed, before system(3) and popen(3), whose
 * child at once becomes a shell.
 */
void aw_settle_before_shell(void);

/*
 * The caller is about to close fd, or to end the process with all its fds. If the kernel closed a
 * socket with an unread MPA Request, the peer's connection would end by a reset: the Request is
 * answered first, unless the program wants a reset. Both wait until no other thread starts such an
 * fd.
 */
void aw_settle_before_close(int fd);
void aw_settle_before_end(void);

#endif
