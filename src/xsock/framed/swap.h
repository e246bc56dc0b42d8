// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Puts one end of a pair in the place of a connected TCP socket, at all its fds of this process, and
// gives the socket and the pair's other end to the proxy process.
#ifndef XSOCK_FRAMED_SWAP_H
#define XSOCK_FRAMED_SWAP_H

#include "xsock/process/fdtab.h"

/*
 * Gives the connection, and the far end of the pair whose near end file is, to who will carry it. Both
 * fds stay the caller's. 0 or an errno; then nothing has changed.
 */
typedef int aw_swap_give(struct aw_sock *sock, int tcp, int far, int near);
aw_swap_give aw_swap_to_proxy;

/* sock is STARTING and held, fd one of its fds; without the lock. 0 (BRIDGED) or an errno (as before). */
int aw_swap_socket(struct aw_sock *sock, int fd, aw_swap_give *give);
/* The same for fd alone, in a child of vfork's; own: a copy of what the table has. */
int aw_swap_copy(struct aw_sock *own, int fd, aw_swap_give *give);

#endif
