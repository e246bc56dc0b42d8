// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The process's connections in the order of aw_conn_connect (core/turn.h). Initiators only.
#ifndef NET_CONN_ORDER_H
#define NET_CONN_ORDER_H

#include "net/conn/conn_machine.h"

/* Once, before any other call; info.peer stays as it is. */
void aw_order_begin(struct aw_conn *c);

/* Another conn to the peer connects, or is tried again: this one is to wait. */
bool aw_order_is_led(struct aw_conn *c);

/* The conn connects now, whether it waited or not, and others to its peer wait for it. */
void aw_order_lead(struct aw_conn *c);

/* The conn waits: its deadline is set anew to the moment at which that is over. Its watch has been added. */
void aw_order_wait(struct aw_conn *c);

/* TCP has connected the conn, or it has ended. Any number of times. */
void aw_order_pass(struct aw_conn *c);

#endif
