// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Mode `auto`: two ends of one host, one user and one network namespace use the kernel's own AF_UNIX connection in the place of TCP.
//
// The client's offer is an AF_UNIX listener, named by the inode of its TCP socket. It is there before the TCP handshake. The server
// that has accepted the TCP connection asks the kernel for the client's inode, and connects to the offer: with that it has taken
// it. The client ends the offer by shutdown(2) before its connect(2) returns, and accepts what was taken. The kernel orders the two,
// under the offer's lock: either the server's connect succeeds and both ends use the pair, or it is refused and both use TCP. Until
// then neither program has seen its fd's number, so that no byte of theirs was sent. Where accept(2) is not seen, nobody takes the offer.
//
// step  client, in connect(2)                       server, in accept(2)
// 1     asks whether a listener of its user is
//       registered (hint.h); otherwise makes no
//       offer
// 2     makes the socket STARTING; makes the offer
// 3     connects TCP                                libc's accept returns the TCP connection
// 4     waits until the offer is taken, TCP brings  asks the kernel for the inode of the client's
//       bytes or the end, or                        socket (sock_diag(7), peer.h); connects to
//       ANYWARP_SOCKETS_PAIR_MS is over             that offer, if its owner is the same user
//                                                   (SO_PEERCRED)
// 5     ends the offer by shutdown(2); accepts      puts its end in the number's place
//       what has connected, from its own user
//       alone
// 6     puts its end in the place of all numbers    returns the number
//       of the socket
//
// The time in step 4 bounds how long connect(2) waits and decides nothing else. A process that is
// killed at any step closes its ends (tests/sockets/test_pair.py kills either one before each
// call). No offer is made by a client that would have to accept the connection itself in its only
// thread, to a listener with TCP_DEFER_ACCEPT, for a socket older than its process's last fork, by
// a process that uses half of its fd numbers, by a child of vfork(2), and in a seccomp(2) sandbox.
// After n offers in a row that a server has not taken, 2^n - 1 connections to it make none (n is
// at most 6).
//
// Each end keeps the TCP connection beside the pair, idle and hidden: names and TCP's options are
// that socket's, and the port stays taken. SO_LINGER with a time of zero closes it first, so that
// the peer finds its reset there.
#ifndef XSOCK_PAIR_OFFER_H
#define XSOCK_PAIR_OFFER_H

#include <stdbool.h>
#include <sys/socket.h>

#include "xsock/pair/plain.h"

/*
 * Active end: makes an offer, if the server is known to take offers, and calls connect(2) for a CANDIDATE in mode `auto`, of which
 * *result is the result. Waits for the server's accept for a short time, and notes why the connection is plain TCP if it stays so. Returns
 * AW_PLAIN_NOT then; else it has not called connect(2), and tells why there is no offer. Call without a lock.
 */
enum aw_plain aw_offer_connect(int fd, const struct sockaddr *addr, socklen_t len, int *result);

/*
 * shutdown(2) of fd has succeeded. It ends a connect that is under way; where that call was between its two parts, it goes on: shuts
 * fd down again until the call has returned. Keeps errno. Call without a lock.
 */
void aw_offer_shut_down(int fd, int how);

/*
 * Passive end: fd was accepted in mode `auto`, and its number is not known to the program yet. Takes the client's offer if there is
 * one; else fd stays as it is, and the reason is noted. flags: as accept4(2) has them. Keeps errno. Call without a lock.
 */
void aw_offer_take(int fd, int flags);

/* A listener in mode `auto` that the program waits for (pair/attend.h): returns the fd of its registration, for aw_sock.beside, or 0. */
int aw_offer_announce(int listener);
/* The program has set TCP_DEFER_ACCEPT of fd: a listener takes no offers then, and its registration ends. */
void aw_offer_refuse(int fd);

#endif
