// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The options at level SOL_IWARP (anywarp/sockets.h), which the library itself has. Callers hold no
// lock.
#ifndef XSOCK_PRELOAD_IWARP_OPTION_H
#define XSOCK_PRELOAD_IWARP_OPTION_H

#include <sys/socket.h>

/* As getsockopt(2) and setsockopt(2). */
int aw_iwarp_option_get(int fd, int name, void *value, socklen_t *len);
int aw_iwarp_option_set(int fd, int name, const void *value, socklen_t len);

#endif
