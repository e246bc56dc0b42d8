// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The proxy process's share of a slot in a program's arena: it holds the slot as any relative of the program does.
#ifndef XSOCK_PROXY_SHARE_H
#define XSOCK_PROXY_SHARE_H

#include <stdbool.h>

#include "xsock/framed/layout.h"

struct aw_share {
	int fd; /* the arena's, an open file of our own: the lock ends with it; -1: the slot is a copy that nobody else has */
	unsigned number;
	struct aw_arena_table *table;
	struct aw_slot *slot;
};

/* A share of slot number, of the socket ino. memory: the arena's fd, the caller's. 0 or an errno. */
int aw_share_take(struct aw_share *share, int memory, unsigned number, uint64_t ino);
/*
 * A copy of slot number instead, of an arena that another user's process may write to. The program that gives it holds it alone, and
 * leaves it.
 */
int aw_share_copy(struct aw_share *share, int memory, unsigned number);
void aw_share_put(struct aw_share *share);
/* No other process claims the slot. */
bool aw_share_is_alone(const struct aw_share *share);

#endif
