// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A connection of a rule tls-plain as a bridge's line: the program's bytes within TLS (net/tls/tls.h), without MPA, so that its peer may be
// any program that speaks TLS 1.3. The handshake is the line's, from TCP's first byte on, and nothing of the program's leaves before its end.
#ifndef XSOCK_PROXY_LINE_TLS_H
#define XSOCK_PROXY_LINE_TLS_H

#include "xsock/base/request.h"
#include "xsock/endpoint/line.h"

/* The line owns tcp. NULL, and errno: no memory or fd, or the settings of TLS are wrong; the caller still owns tcp. */
struct aw_line *aw_line_of_tls(const struct aw_request *request, int tcp);

#endif
