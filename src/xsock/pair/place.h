// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Puts one end of a pair in the place of a connected TCP socket. The TCP socket stays open beside it, hidden (aw_sock.beside), for
// names, options and the port. Callers hold no lock.
#ifndef XSOCK_PAIR_PLACE_H
#define XSOCK_PAIR_PLACE_H

#include "xsock/base/ip.h"
#include "xsock/process/fdtab.h"

/* A TCP connection, and its end of the pair. The functions below take over near and beside. */
struct aw_pair_place {
	int near; /* this end of the pair */
	int beside; /* a copy of the TCP socket (aw_proxy_copy_spare) */
	union aw_address local, remote; /* the addresses of the TCP connection */
};

/* Makes near the file of all fds of sock, which is STARTING and held; fd is one of them. */
void aw_place_connected(struct aw_sock *sock, int fd, const struct aw_pair_place *place);
/*
 * The same for fd, which accept(2) is about to return: no other thread knows its number, and the table does not know it. flags:
 * SOCK_CLOEXEC where the program wants it.
 */
void aw_place_accepted(int fd, int flags, const struct aw_pair_place *place);

/* Calls use with the TCP socket beside fd, under the table's lock. False: there is none. */
typedef void aw_place_use(int tcp, void *arg);
bool aw_place_use_tcp(int fd, aw_place_use *use, void *arg);

#endif
