// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The module's connections in the order in which they were opened (core/turn.h). Initiators only. A peer is an address and
// port in a network namespace.
#ifndef KMOD_CM_ORDER_H
#define KMOD_CM_ORDER_H

#include "kmod/cm/conn.h"

/* Before the first connect. True: it connects now. False: it waits, and is kicked when that is over. */
bool awk_order_take(struct awk_conn *c);
/* True while it waits. */
bool awk_order_waits(struct awk_conn *c);
/* It connects now, whether it waited or not, and others to its peer wait for it. */
void awk_order_lead(struct awk_conn *c);
/* It has waited, and TCP has been asked to connect it: the next one that waits may follow. */
void awk_order_sent(struct awk_conn *c);
/*
 * TCP has connected it, or it fails. It still has its socket and its peer's address as they were.
 * Any number of times.
 */
void awk_order_pass(struct awk_conn *c);

#endif
