// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What a program has set on its connection and the library has other values for on the TCP socket: the
// program reads back its own.
#ifndef XSOCK_KEEPER_OPTIONS_H
#define XSOCK_KEEPER_OPTIONS_H

#include <stdint.h>

#include "xsock/keeper/bridge.h"
#include "xsock/order.h"

#define AW_OPTIONS_KEPT 7

struct aw_options {
	int values[AW_OPTIONS_KEPT];
};

/* As they are on tcp before the endpoint has it. */
void aw_options_read(struct aw_options *options, int tcp);
/* 0 with value and its length, or an errno. */
int aw_options_get(const struct aw_options *options, const struct aw_bridge *bridge,
		   const struct aw_order *order, struct aw_answer *answer);
int aw_options_set(struct aw_options *options, struct aw_bridge *bridge,
		   const struct aw_order *order);

#endif
