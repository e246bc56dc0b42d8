// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The abstract names of AF_UNIX sockets by which two ends of a host find each other. The kernel keeps abstract names per network
// namespace, so that an end in another one finds nothing.
#ifndef XSOCK_PAIR_NAME_H
#define XSOCK_PAIR_NAME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/* One end of a TCP connection, or a listener. An IPv4 address is mapped into IPv6; the port is in network byte order. */
struct aw_tcp_end {
	uint8_t ip[16];
	uint16_t port;
};

/* False: addr is no IP address. */
bool aw_pair_end_of(const struct sockaddr *addr, struct aw_tcp_end *end);
/* Returns whether a connection between these two ends is within the host: both addresses are the same one, or loopback's. */
bool aw_pair_is_local(const struct aw_tcp_end *a, const struct aw_tcp_end *b);

/* The name of the offer for the TCP socket with this inode. Returns the name's length. */
socklen_t aw_pair_offer_name(ino_t ino, struct sockaddr_un *name);
/*
 * The name of the listener of this process's user at that address and port. The address of a listener at all addresses is all
 * zeros (aw_pair_any). Returns the name's length.
 */
socklen_t aw_pair_listener_name(const struct aw_tcp_end *at, struct sockaddr_un *name);
/* Makes of end the listener at all addresses with its port. */
struct aw_tcp_end aw_pair_any(const struct aw_tcp_end *end);

/* Returns whether the process at the other end of fd, a connected AF_UNIX socket, has this process's user. */
bool aw_pair_is_same_user(int fd);

#endif
