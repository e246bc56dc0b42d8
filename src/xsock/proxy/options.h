// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Options of a connection that the proxy process carries, got and set by order.
#ifndef XSOCK_PROXY_OPTIONS_H
#define XSOCK_PROXY_OPTIONS_H

#include "xsock/base/kept.h"
#include "xsock/base/request.h"
#include "xsock/proxy/bridge.h"

/* 0 with value and its length, or an errno. */
int aw_options_get(const struct aw_kept *kept, const struct aw_request *request,
		   struct aw_reply *answer);
int aw_options_set(struct aw_kept *kept, struct aw_bridge *bridge,
		   const struct aw_request *request);

#endif
