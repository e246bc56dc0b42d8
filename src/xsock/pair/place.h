// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Puts one end of a pair in the place of a connected TCP socket. The TCP socket stays open beside it, hidden (aw_sock.beside), for
// names, options and the port. Callers hold no lock.
#ifndef XSOCK_PAIR_PLACE_H
#define XSOCK_PAIR_PLACE_H

#include "xsock/process/fdtab.h"

/* Copies fd to a number beyond those that a program uses; -1: the program needs its numbers, or there is none. */
int aw_place_reserve(int fd);
/*
 * Makes near the file of fd, whose TCP socket is beside as well, for all fds of sock, which is STARTING and held. The functions take
 * over near and beside.
 */
void aw_place_connected(struct aw_sock *sock, int fd, int near, int beside);
/* The same for fd, which accept(2) is about to return: no other thread knows its number, and the table does not know it. */
void aw_place_accepted(int fd, int near, int beside);

/* Calls use with the TCP socket beside fd, under the table's lock. False: there is none. */
typedef void aw_place_use(int tcp, void *arg);
bool aw_place_use_tcp(int fd, aw_place_use *use, void *arg);

#endif
