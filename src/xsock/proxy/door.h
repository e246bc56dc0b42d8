// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where programs of our user's that have another proxy process ask for a UDP port: a socket in our user's directory.
#ifndef XSOCK_PROXY_DOOR_H
#define XSOCK_PROXY_DOOR_H

#include "xsock/proxy/loop.h"

/* Unless it is open: before the first port is taken. */
void aw_door_open(struct aw_loop *loop);
void aw_door_close(void);

#endif
