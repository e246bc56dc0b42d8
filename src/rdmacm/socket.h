// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The TCP socket of an id before a connection or a listener takes it.
#ifndef RDMACM_SOCKET_H
#define RDMACM_SOCKET_H

#include "rdmacm/id.h"

/*
 * Gives cm a socket bound to addr, with its port known at once (port 0: any), and sets the id's
 * source address. Called without the lock by the thread that owns the id. 0, or socket(2)'s or
 * bind(2)'s error.
 */
int aw_cm_socket_bind(struct aw_cm_id *cm, const struct sockaddr *addr);

/* As aw_cm_socket_bind, for an id that will connect: a free port in place of addr's (rdmacm/port.h), EADDRINUSE without one. */
int aw_cm_socket_bind_any(struct aw_cm_id *cm, const struct sockaddr *addr);

/* As aw_cm_socket_bind, for an id about to connect where no port is free: one that it shares (aw_cm_port_share). */
int aw_cm_socket_bind_shared(struct aw_cm_id *cm, const struct sockaddr *addr);

/* As aw_cm_socket_bind, for an id about to connect: connect(2) chooses the port. */
int aw_cm_socket_bind_late(struct aw_cm_id *cm, const struct sockaddr *addr);

/*
 * Makes a socket for a second connection of an id: bound to src, with its port or any. The caller
 * owns *out, and cm's own socket and addresses stay as they are. 0, or socket(2)'s or bind(2)'s
 * error.
 */
int aw_cm_socket_again(const struct aw_cm_id *cm, const struct sockaddr *src, bool any_port,
		       int *out);

/*
 * Sets an option that connections inherit: with it their ports can be bound again after they ended.
 */
void aw_cm_socket_set_reuse(int fd, bool on);

/*
 * Ends the sharing of a bound id's port by RDMA_OPTION_ID_REUSEADDR: another socket, which lets nobody share, takes the
 * place of cm's. 0, or socket(2)'s or bind(2)'s error: EADDRINUSE where others are there, and the port is shared as before.
 * Where another program was given the port meanwhile cm has no socket.
 */
int aw_cm_socket_own_port(struct aw_cm_id *cm);

/*
 * Makes the socket of an id that is bound to the IPv6 wildcard take IPv4, or not, as cm->af_only says. 0, or socket(2)'s
 * or bind(2)'s error, and the socket stays as it is.
 */
int aw_cm_socket_match_families(struct aw_cm_id *cm);

void aw_cm_socket_set_tos(const struct aw_cm_id *cm, int fd);

#endif
