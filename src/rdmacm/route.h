// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kernel's routing table, asked through a datagram socket that sends nothing. An answer serves for a millisecond: of
// connections that begin together the first asks. A route that changes meanwhile may come too late for them, as it may for a
// connection that has just asked.
#ifndef RDMACM_ROUTE_H
#define RDMACM_ROUTE_H

#include <sys/socket.h>

/*
 * Finds the local address that a connection from src (any port) to dst would have, and, where dst is a wildcard, the address
 * that it stands for. The ports of both results mean nothing. 0, or the errno of socket(2), bind(2) or connect(2).
 */
int aw_cm_route_ask(const struct sockaddr *src, const struct sockaddr *dst,
		    struct sockaddr_storage *from, struct sockaddr_storage *to);

#endif
