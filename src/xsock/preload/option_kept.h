// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Options of a connection that the proxy process has. Some of them the proxy process keeps itself
// (base/kept.h). For the others it lends this process the TCP socket, so that the kernel checks the
// rights of this process, not those of the proxy process. Callers hold no lock.
#ifndef XSOCK_PRELOAD_OPTION_KEPT_H
#define XSOCK_PRELOAD_OPTION_KEPT_H

#include <sys/socket.h>

/* As getsockopt(2) and setsockopt(2); value is not NULL. */
int aw_option_get_kept(int fd, int level, int name, void *value, socklen_t *len);
int aw_option_set_kept(int fd, int level, int name, const void *value, socklen_t len);

#endif
