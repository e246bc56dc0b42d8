// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The swap: replaces a connected TCP socket, at all its fds of this process, by one end of an
// AF_UNIX pair, and exports the TCP socket and the pair's far end to the process that has the
// connection from then on.
#ifndef XSOCK_FRAMED_SWAP_H
#define XSOCK_FRAMED_SWAP_H

#include "xsock/process/fdtab.h"

/*
 * Exports the TCP connection tcp and the far end of the pair. near is the end that the program
 * gets. Both fds stay the caller's. Returns 0, or an errno if nothing has changed.
 */
typedef int aw_swap_export(struct aw_sock *sock, int tcp, int far, int near);
/* Exports the connection to the proxy process, which is started if there is none. */
aw_swap_export aw_swap_to_proxy;

/*
 * Swaps sock, which is STARTING and held; fd is one of its fds. The caller does not hold the
 * table's lock. Returns 0 if sock is BRIDGED, or an errno if sock is as before.
 */
int aw_swap_socket(struct aw_sock *sock, int fd, aw_swap_export *give);
/* The same for fd alone, in a child of vfork. own is a copy of the table's socket. */
int aw_swap_copy(struct aw_sock *own, int fd, aw_swap_export *give);

#endif
