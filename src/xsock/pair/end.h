// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How the end of a connection that is a pair looks, where AF_UNIX's differs from TCP's. A reset reaches the TCP socket beside the pair
// as well. Called when a call on the pair has met the end, without a lock.
#ifndef XSOCK_PAIR_END_H
#define XSOCK_PAIR_END_H

/*
 * A read of fd has met the stream's end. Returns 0; ECONNRESET: the peer has reset the connection, and no call has told that yet; -1:
 * fd is no pair.
 */
int aw_pair_end_of_read(int fd);
/* A read of fd has failed with ECONNRESET. Returns that; 0: the program knows already that the stream has ended. */
int aw_pair_reset(int fd);
/*
 * A write to fd has failed with EPIPE. Returns that, or ECONNRESET; 0: the program's first write behind the peer's end, which TCP
 * takes; -1: fd is no pair.
 */
int aw_pair_broken(int fd);
/* Returns SO_ERROR, of which near is the pair's own. */
int aw_pair_take_error(int fd, int near);
/* The program has shut the writing direction of fd, which may be a pair. */
void aw_pair_note_shut(int fd);

#endif
