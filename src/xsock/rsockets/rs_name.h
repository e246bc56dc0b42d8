// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
//
// The addresses of rsockets.
#ifndef XSOCK_RSOCKETS_RS_NAME_H
#define XSOCK_RSOCKETS_RS_NAME_H

#include "xsock/rsockets/rs_socket.h"

/* 0, -EINVAL or -EAFNOSUPPORT: whether a program may name this address for rs. */
int aw_rs_name_check(const struct aw_rs *rs, const struct sockaddr *addr, socklen_t len)
	__attribute__((warn_unused_result));

/* Binds an rsocket without an address, whose lock is held; addr NULL: to any, at a port of its own. */
int aw_rs_name_bind(struct aw_rs *rs, const struct sockaddr *addr)
	__attribute__((warn_unused_result));

/* As getpeername and getsockname. */
int aw_rs_name_get(struct aw_rs *rs, bool peer, struct sockaddr *addr, socklen_t *len);

#endif
