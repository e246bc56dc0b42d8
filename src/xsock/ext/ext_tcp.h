// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bytes over a TCP socket of the program's, blocking or not, until a deadline. 0, or an errno: ETIMEDOUT,
// ECONNRESET where the peer has ended the stream, or what TCP says.
#ifndef XSOCK_EXT_EXT_TCP_H
#define XSOCK_EXT_EXT_TCP_H

#include <stddef.h>
#include <stdint.h>

/* CLOCK_MONOTONIC; ms until then, at least 0. */
int64_t aw_ext_until_ns(int64_t in_ns);
int aw_ext_left_ms(int64_t until_ns);

int aw_ext_tcp_write(int fd, const void *octets, size_t len, int64_t until_ns);
int aw_ext_tcp_read(int fd, void *octets, size_t len, int64_t until_ns);
/* The same, but they stay where they are. */
int aw_ext_tcp_peek(int fd, void *octets, size_t len, int64_t until_ns);

#endif
