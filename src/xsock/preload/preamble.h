// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A partial preamble: the first bytes of a client begin like the key of an MPA Request, and the
// rest has not come. Until the deadline a call that must not wait finds no bytes: the program may
// have other clients to serve. The kernel wakes a waiting thread at the next byte, and the
// library's wait functions wake it at the deadline, when the connection becomes plain TCP.
#ifndef XSOCK_PRELOAD_PREAMBLE_H
#define XSOCK_PRELOAD_PREAMBLE_H

#include "xsock/preload/wait.h"
#include "xsock/process/fdtab.h"

/*
 * bytes of a preamble have come on fd, which is PENDING. Returns true while the deadline is ahead,
 * and sets the deadline at the first call. False: the deadline is over, or no more bytes can come.
 */
bool aw_preamble_lasts(int fd, size_t bytes);
bool aw_preamble_is_over(const struct aw_sock *sock);
/* Returns whether poll must not report fd as readable, because its bytes are a partial preamble. */
bool aw_preamble_hides(int fd);
/*
 * The caller of these two holds the table's lock. wake lets the threads that wait in epoll sets
 * look at the new deadline; it is called again when fd is added to a set. end restores SO_RCVLOWAT
 * and the registrations, when sock is decided.
 */
void aw_preamble_wake(const struct aw_sock *sock);
void aw_preamble_end(struct aw_sock *sock);

/*
 * Returns the time until the deadline as aw_deadline_left does, or until the first partial preamble
 * is over if that is sooner.
 */
const struct timespec *aw_preamble_left(const struct aw_deadline *deadline, struct timespec *left);
/* Makes the first I/O on sockets whose partial preamble is over. */
void aw_preamble_settle(void);

/* Returns how long the rest of a key may take, in ms. */
int aw_preamble_ms(void);

#endif
