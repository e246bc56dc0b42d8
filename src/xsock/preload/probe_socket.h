// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The UDP sockets that probes are sent on. A program that connects to the same server again and again keeps one: making
// and closing a socket takes as long as the answer's way. The fd is hidden from the program. Called by probe.c.
#ifndef XSOCK_PRELOAD_PROBE_SOCKET_H
#define XSOCK_PRELOAD_PROBE_SOCKET_H

#include <stdbool.h>
#include <sys/socket.h>

/* A socket in use by one call. */
struct aw_probe_socket {
	int fd;
	bool may_keep; /* the call has the kept socket to itself, if there is one */
};

/*
 * Makes *sock a socket from the connection's own address to the server's. False: there is none, and nothing is to be put
 * back.
 */
bool aw_probe_socket_take(struct aw_probe_socket *sock, const struct sockaddr_storage *local,
			  const struct sockaddr_storage *remote);
/* answered: the probe was answered, so that nothing is still to come on the socket. */
void aw_probe_socket_put(const struct aw_probe_socket *sock, bool answered);

#endif
