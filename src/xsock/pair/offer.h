// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Mode `auto`: two ends of one host, one user and one network namespace use the kernel's own AF_UNIX connection in the place of TCP.
//
// The client's offer is an AF_UNIX listener, named by the inode of its TCP socket. It is there before the TCP handshake. The server
// that has accepted the TCP connection asks the kernel for the client's inode, and connects to the offer: with that it has taken
// it. The client ends the offer by shutdown(2) before its connect(2) returns, and accepts what was taken. The kernel orders the two,
// under the offer's lock: either the server's connect succeeds and both ends use the pair, or it is refused and both use TCP. Until
// then neither program has seen its fd's number, so that no byte of theirs was sent. Where accept(2) is not seen, nobody takes the offer.
#ifndef XSOCK_PAIR_OFFER_H
#define XSOCK_PAIR_OFFER_H

#include <stdbool.h>
#include <sys/socket.h>

/*
 * Active end: makes an offer, if the server is known to take offers, and calls connect(2) for a CANDIDATE in mode `auto`, of which
 * *result is the result. Waits for the server's accept for a short time. False: it has made none, and has not called connect(2). Call
 * without a lock.
 */
bool aw_offer_connect(int fd, const struct sockaddr *addr, socklen_t len, int *result);

/*
 * shutdown(2) of fd has succeeded. It ends a connect that is under way; where that call was between its two parts, it goes on: shuts
 * fd down again until the call has returned. Keeps errno. Call without a lock.
 */
void aw_offer_shut_down(int fd, int how);

/*
 * Passive end: fd was accepted in mode `auto`, and its number is not known to the program yet. Takes the client's offer if there is
 * one; else fd stays as it is. flags: as accept4(2) has them. Keeps errno. Call without a lock.
 */
void aw_offer_take(int fd, int flags);

/* A listener in mode `auto` that the program waits for (pair/attend.h): returns the fd of its registration, for aw_sock.beside, or 0. */
int aw_offer_announce(int listener);
/* The program has set TCP_DEFER_ACCEPT of fd: a listener takes no offers then, and its registration ends. */
void aw_offer_refuse(int fd);

#endif
