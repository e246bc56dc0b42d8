// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A slot while the proxy process bridges it. When the proxy process is killed, bytes that the bridge had taken are lost: the
// connection must then end by a reset, and no process that holds the slot may go on with it. Therefore the TCP socket has
// SO_LINGER with a time of zero meanwhile, by which the last close resets, and the slot keeps the program's own value.
#ifndef XSOCK_FRAMED_BRIDGED_H
#define XSOCK_FRAMED_BRIDGED_H

#include "xsock/framed/layout.h"

#include <sys/socket.h>

/*
 * For the proxy process. memory is its own fd of the arena, whose lock on slot number ends with the process; -1: the slot
 * is a private copy.
 */
void aw_bridged_begin(struct aw_slot *slot, int memory, unsigned number, int tcp);
/* The program's stream has ended, and TCP has all its bytes: the program's own SO_LINGER holds again. */
void aw_bridged_give_linger(struct aw_slot *slot, int tcp);
/* Ends the bridge. The socket of a broken slot still resets. */
void aw_bridged_end(struct aw_slot *slot, int tcp);

/*
 * For a process that holds the slot; memory is an fd of the arena. Marks the slot as broken and returns true if a proxy
 * process has died while it bridged the slot.
 */
bool aw_bridged_review(struct aw_slot *slot, int memory, unsigned number);
/* Get and set the program's own SO_LINGER. False: the TCP socket has it. */
bool aw_bridged_get_linger(struct aw_slot *slot, struct linger *linger);
bool aw_bridged_set_linger(struct aw_slot *slot, const struct linger *linger);

#endif
