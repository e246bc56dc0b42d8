// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The source port of an id that will connect. bind(2) to port 0 looks at port after port, thousands where ended
// connections still hold theirs (TIME_WAIT): for half of the range it takes 5 ms. So ports are tried at random first, and a few
// tries are enough unless nearly all are in use.
#ifndef RDMACM_PORT_H
#define RDMACM_PORT_H

#include <sys/socket.h>

/*
 * Binds a socket to addr with a free port in place of addr's: one of net.ipv4.ip_local_port_range that is not in
 * net.ipv4.ip_local_reserved_ports. 0, or bind(2)'s error: EADDRINUSE where none is free. *bound: addr with that port, or
 * with port 0 where bind(2) chose one.
 */
int aw_cm_port_bind(int fd, const struct sockaddr *addr, struct sockaddr_storage *bound);

/*
 * The same for a socket that has SO_REUSEADDR: a port that connections may have, or have had, to other destinations, or to the same one, where
 * connect(2) fails with EADDRNOTAVAIL. connect(2) itself chooses no port that was bound by bind(2), as those of ids were.
 */
int aw_cm_port_share(int fd, const struct sockaddr *addr, struct sockaddr_storage *bound);

#endif
