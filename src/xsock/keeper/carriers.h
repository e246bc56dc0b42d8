// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Carriers: keepers born of a program, each with the connections that were direct there. Orders that are about one
// of these are passed on.
#ifndef XSOCK_KEEPER_CARRIERS_H
#define XSOCK_KEEPER_CARRIERS_H

#include <stdbool.h>

#include "xsock/keeper/letter.h"
#include "xsock/keeper/loop.h"

/* AW_ORDER_CARRIER. */
void aw_carriers_add(struct aw_loop *loop, struct aw_letter *letter);
/* Notes what they have told and nobody has read yet. */
void aw_carriers_hear(void);
/* To the carrier of order's connection, and fd with it. False: it has none. */
bool aw_carriers_pass(const struct aw_order *order, int fd);
/* To all that are believed about a process of owner's: its own, and those of our own user. */
void aw_carriers_tell(const struct aw_order *order, uid_t owner, int fd);

#endif
