// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The addresses of rsockets.
#ifndef XSOCK_RSOCKETS_RS_NAME_H
#define XSOCK_RSOCKETS_RS_NAME_H

#include "xsock/rsockets/rs_socket.h"

/* Checks an address that a program has passed for rs. Returns 0, -EINVAL or -EAFNOSUPPORT. */
int aw_rs_name_check(const struct aw_rs *rs, const struct sockaddr *addr, socklen_t len)
	__attribute__((warn_unused_result));

/* Binds an rsocket that has no address; addr NULL: to any address, at a free port. */
int aw_rs_name_bind(struct aw_rs *rs, const struct sockaddr *addr)
	__attribute__((warn_unused_result)) AW_REQUIRES(rs->lock);

/* As getpeername (peer) and getsockname. Returns 0 or a negative errno. */
int aw_rs_name_get(struct aw_rs *rs, bool peer, struct sockaddr *addr, socklen_t *len);

#endif
