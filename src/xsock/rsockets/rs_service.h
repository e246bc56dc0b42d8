// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A thread for work that goes on while the program does something else: it serves listeners, and
// connections that were begun without waiting, until they are established or have failed. Called by
// rs_listen.c, rs_connect.c and rs_socket.c; the functions take the service's lock.
#ifndef XSOCK_RSOCKETS_RS_SERVICE_H
#define XSOCK_RSOCKETS_RS_SERVICE_H

/* Has the thread serve the rsocket as long as it needs that. Returns 0 or a negative errno. */
int aw_rs_service_watch(int fd) __attribute__((warn_unused_result));

/* Has the thread look again at what it watches. */
void aw_rs_service_wake(void);

/* Called in the child of a fork, which has no such thread. */
void aw_rs_service_forked(void);

#endif
