// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Options of a connection that the keeper carries, got and set by order.
#ifndef XSOCK_KEEPER_OPTIONS_H
#define XSOCK_KEEPER_OPTIONS_H

#include "xsock/keeper/bridge.h"
#include "xsock/kept.h"
#include "xsock/order.h"

/* 0 with value and its length, or an errno. */
int aw_options_get(const struct aw_kept *kept, const struct aw_order *order,
		   struct aw_answer *answer);
int aw_options_set(struct aw_kept *kept, struct aw_bridge *bridge, const struct aw_order *order);

#endif
