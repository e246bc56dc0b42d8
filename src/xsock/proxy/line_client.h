// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An accepted connection whose MPA Request is still due, as a bridge's line. When the Request is whole, another line takes its place:
// a record's or an endpoint's. A client that sends something else, or nothing in its time, is refused by a reset.
#ifndef XSOCK_PROXY_LINE_CLIENT_H
#define XSOCK_PROXY_LINE_CLIENT_H

#include "xsock/base/request.h"
#include "xsock/endpoint/line.h"

/*
 * The line owns tcp; far, the bridge's end of the pair, stays the bridge's. NULL, and errno: no memory or fd; the caller still owns
 * tcp.
 */
struct aw_line *aw_line_of_client(const struct aw_request *request, int tcp, int far);

#endif
