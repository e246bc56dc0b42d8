// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The executor's job for rsockets: it serves listeners, and connections that were begun without waiting,
// until they are established or have failed. Called by rs_listen.c, rs_connect.c, rs_socket.c and
// rs_table.c; the functions take the service's lock.
#ifndef XSOCK_RSOCKETS_RS_SERVICE_H
#define XSOCK_RSOCKETS_RS_SERVICE_H

#include "xsock/rsockets/rs_socket.h"

/*
 * Has the thread serve the rsocket, which the caller holds, as long as it needs that. Returns 0 or a negative errno.
 */
int aw_rs_service_watch(struct aw_rs *rs) __attribute__((warn_unused_result));
/* Ends that. The rsocket may be destroyed afterwards. */
void aw_rs_service_leave(struct aw_rs *rs);

/* Called in the child of a fork, which has no such thread. */
void aw_rs_service_forked(void);

#endif
