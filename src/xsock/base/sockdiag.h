// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds all TCP sockets by sock_diag(7), and the inode behind a process's fd. Called by proxy/status.c, framed/census.c and src/cli.
#ifndef XSOCK_BASE_SOCKDIAG_H
#define XSOCK_BASE_SOCKDIAG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* A TCP socket that has an inode, as the kernel describes it. */
struct aw_sockdiag_conn {
	uint64_t ino;
	uint8_t state; /* the kernel's number, of TCP_ESTABLISHED and its like */
	bool ipv6;
	uint8_t local[16], peer[16]; /* an IPv4 address is in the first 4 bytes */
	uint16_t local_port, peer_port; /* in host byte order */
	bool counted; /* the fields below are known */
	/* bytes of the stream; a byte that was retransmitted counts once */
	uint64_t bytes_in, bytes_out;
	uint32_t rtt_us, retransmits;
};

typedef void aw_sockdiag_fn(const struct aw_sockdiag_conn *conn, void *arg);

/*
 * Calls use for each TCP socket of the thread's network namespace, listeners among them. False: this kernel has no sock_diag for TCP, or
 * the process may not use it.
 */
bool aw_sockdiag_each(bool ipv6, aw_sockdiag_fn *use, void *arg);

/*
 * Finds the inode of the socket behind a link of /proc/PID/fd, whose path begins at dir. False: the link is no
 * socket's or cannot be read.
 */
__attribute__((warn_unused_result)) bool aw_sockdiag_fd(int dir, const char *path, uint64_t *ino);

#endif
