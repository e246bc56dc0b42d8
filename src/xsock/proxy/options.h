// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Gets and sets options of a connection for requests. Called by control.c.
#ifndef XSOCK_PROXY_OPTIONS_H
#define XSOCK_PROXY_OPTIONS_H

#include "xsock/base/kept.h"
#include "xsock/base/request.h"
#include "xsock/proxy/bridge.h"

/* Return 0 or an errno. aw_options_get() stores the value and its length in *reply. */
int aw_options_get(const struct aw_kept *kept, const struct aw_request *request,
		   struct aw_reply *reply);
int aw_options_set(struct aw_kept *kept, struct aw_bridge *bridge,
		   const struct aw_request *request);

#endif
