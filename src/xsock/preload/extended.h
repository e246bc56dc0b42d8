// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Options of extended sockets (aw_sock.extended): libanywarp-xsock.so in this process has their
// connections. Callers hold no lock.
#ifndef XSOCK_PRELOAD_EXTENDED_H
#define XSOCK_PRELOAD_EXTENDED_H

#include "xsock/process/fdtab.h"

/* TCP's options, and SO_ERROR, as getsockopt(2) and setsockopt(2). */
int aw_extended_get_option(const struct aw_sock *sock, int level, int name, void *value,
			   socklen_t *len);
int aw_extended_set_option(const struct aw_sock *sock, int level, int name, const void *value,
			   socklen_t len);

#endif
