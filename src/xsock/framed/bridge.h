// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Bridges for what wrappers cannot follow: stdio, programs without this library, strict sandboxes, receivers of SCM_RIGHTS.
// The fd becomes one end of a pair, and the proxy process carries the record on.
#ifndef XSOCK_FRAMED_BRIDGE_H
#define XSOCK_FRAMED_BRIDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "xsock/framed/arena.h"

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

/*
 * Another process has bridged what this one holds, too: both are to read what the proxy process has read. Where that is another
 * proxy process than this program's, the fds stay framed. Before a wait of any kind: all; before a call: fd.
 */
extern _Atomic(uint32_t) aw_framed_followed; /* aw_arena_bridges, when it was looked at last */
void aw_framed_follow_all(void);
void aw_framed_follow_one(int fd);

static inline void aw_framed_follow(void)
{
	if (__builtin_expect(aw_arena_bridges() != atomic_load_explicit(&aw_framed_followed,
									memory_order_relaxed),
			     0))
		aw_framed_follow_all();
}

#endif
