// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where programs of our user's that have another keeper ask for a UDP port: a socket in our user's directory.
#ifndef XSOCK_KEEPER_DOOR_H
#define XSOCK_KEEPER_DOOR_H

#include "xsock/keeper/loop.h"

/* Unless it is open: before the first port is taken. */
void aw_door_open(struct aw_loop *loop);
void aw_door_close(void);

#endif
