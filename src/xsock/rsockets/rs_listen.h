// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// Listeners. Connections are set up as they come, by the service's thread, and wait in a queue
// for raccept: a peer's connect does not wait for it.
#ifndef XSOCK_RSOCKETS_RS_LISTEN_H
#define XSOCK_RSOCKETS_RS_LISTEN_H

#include "xsock/rsockets/rs_socket.h"

/* The fd to poll for requests, -1 where none is to be taken now: the queue is full, or nothing
 * listens any more. */
int aw_rs_listen_fd(struct aw_rs *rs);

/* Takes what requests have come and fit the queue. */
void aw_rs_listen_serve(struct aw_rs *rs);

/* In the child of a fork, which has no listener yet. */
void aw_rs_listen_forked(void);

/* Stops listening, if it did, and drops what was accepted and not taken. The address is free then. */
void aw_rs_listen_end(struct aw_rs *rs);

#endif
