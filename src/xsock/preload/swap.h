// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Puts one end of a pair in the place of a connected TCP socket, at all its fds of this process, and
// gives the socket and the pair's other end to the keeper.
#ifndef XSOCK_PRELOAD_SWAP_H
#define XSOCK_PRELOAD_SWAP_H

#include "xsock/preload/fdtab.h"

/* Has the socket behind tcp and the pair's far end carried on by somebody, who duplicates both. 0 or an errno. */
typedef int aw_swap_give(const struct aw_sock *sock, int tcp, int far, void *arg);

/* sock is STARTING and held, fd one of its fds; without the lock. 0 (BRIDGED) or an errno (as before). */
int aw_swap_socket(struct aw_sock *sock, int fd);
/* The same, to somebody else than the keeper. */
int aw_swap_socket_to(struct aw_sock *sock, int fd, aw_swap_give *give, void *arg);

#endif
