// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads and writes a TCP socket of the program's, blocking or not, until a deadline. The functions
// return 0 or an errno: ETIMEDOUT, ECONNRESET if the peer has ended the stream, or TCP's error.
// Called by ext_connect.c and ext_place.c.
#ifndef XSOCK_EXT_EXT_TCP_H
#define XSOCK_EXT_EXT_TCP_H

#include <stddef.h>
#include <stdint.h>

/* Returns the ms until a deadline, which is a time of CLOCK_MONOTONIC, at least 0. */
int aw_ext_left_ms(int64_t until_ns);

int aw_ext_tcp_write(int fd, const void *bytes, size_t len, int64_t until_ns);
int aw_ext_tcp_read(int fd, void *bytes, size_t len, int64_t until_ns);
/* Reads without taking the bytes out of the socket. */
int aw_ext_tcp_peek(int fd, void *bytes, size_t len, int64_t until_ns);

#endif
