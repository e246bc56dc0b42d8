// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Listeners. The executor's thread sets up connections as they come; they wait in a queue for
// raccept, so that a peer's connect does not wait for it. Called by rs_service.c and
// rs_socket.c.
#ifndef XSOCK_RSOCKETS_RS_LISTEN_H
#define XSOCK_RSOCKETS_RS_LISTEN_H

#include "xsock/rsockets/rs_socket.h"

/*
 * Accepts the Requests that have come, as long as the queue has room. Returns the fd to poll for
 * more; -1: the queue is full, or rs does not listen any more.
 */
int aw_rs_listen_serve(struct aw_rs *rs) AW_EXCLUDES(rs->lock);

/* Called in the child of a fork, which has no listener. */
void aw_rs_listen_forked(void);

/* Stops listening and closes the connections in the queue; the address is free afterwards. */
void aw_rs_listen_end(struct aw_rs *rs) AW_EXCLUDES(rs->lock);

#endif
