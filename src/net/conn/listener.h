// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A listening TCP socket that turns connections into Requests, and bounds what unaccepted peers can
// hold. A listener without a socket of its own turns connections that the program has made into
// Requests.
#ifndef NET_LISTENER_H
#define NET_LISTENER_H

#include "net/conn/conn.h"

struct aw_listener;

/*
 * Listens on fd (bound, non-blocking), which the listener owns on success. fn gets REQUEST events
 * of new conns, which fn owns from then on; local is what to negotiate against. 0, ENOMEM, or
 * listen(2)'s error (EADDRINUSE).
 */
int aw_listener_create(int fd, int backlog, const struct aw_mpa_local *local, aw_conn_fn *fn,
		       void *arg, struct aw_listener **listener);

/*
 * As aw_listener_create, without a socket: all its connections come by aw_listener_give, at most as
 * many as the program has fds. fn also gets FAILED of connections that send no Request, with a conn
 * that fn destroys. 0, ENOMEM, or aw_watch_add's error.
 */
int aw_listener_create_given(const struct aw_mpa_local *local, aw_conn_fn *fn, void *arg,
			     struct aw_listener **listener);

/*
 * Gives the listener fd, a connected, non-blocking TCP socket, which it owns on success. One event
 * of the connection follows. 0, ENOMEM, or aw_watch_add's error.
 */
int aw_listener_give(struct aw_listener *listener, int fd);

/*
 * Each listener's share of that part of the process's files (net/base/bounds.h), among listeners
 * that have a socket.
 */
uint32_t aw_listener_files(uint32_t part);

/*
 * Closes the listener and its half-open connections; no event runs after it has returned. Not to be
 * called from an event.
 */
void aw_listener_destroy(struct aw_listener *listener);

#endif
