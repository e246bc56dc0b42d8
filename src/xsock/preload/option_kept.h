// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Options of a connection that the proxy process carries: some it keeps itself; for the others it lends us the TCP socket, so
// that the kernel judges us, and not the proxy process.
#ifndef XSOCK_PRELOAD_OPTION_KEPT_H
#define XSOCK_PRELOAD_OPTION_KEPT_H

#include <sys/socket.h>

/* As getsockopt and setsockopt; value is not NULL. */
int aw_option_get_kept(int fd, int level, int name, void *value, socklen_t *len);
int aw_option_set_kept(int fd, int level, int name, const void *value, socklen_t len);

#endif
