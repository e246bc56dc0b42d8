// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bridges for what wrappers cannot follow: stdio, programs without this library, strict sandboxes, receivers of SCM_RIGHTS.
// The fd becomes one end of a pair, and the proxy process carries the record on.
#ifndef XSOCK_FRAMED_BRIDGE_H
#define XSOCK_FRAMED_BRIDGE_H

#include <stdbool.h>

/* A child of vfork's has no table of its own: its fds below this number are looked at. */
#define AW_BRIDGE_BORROWED_MAX 1024

/*
 * fd, if it is framed, is BRIDGED from here on, with all other fds of its socket in this process; not in a child of vfork's. 0
 * or -1 with errno: it is as before.
 */
int aw_framed_bridge(int fd);
/* All that is framed; surviving: what has an fd that an exec leaves open. What cannot be bridged is logged. */
void aw_framed_bridge_all(bool surviving);
/* In a child of vfork's, before an exec: the fds that are left open, of the child alone. */
void aw_framed_bridge_borrowed(void);

#endif
