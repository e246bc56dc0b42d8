// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The proxy process's share of a slot in a program's arena: the proxy process holds the slot as any
// process that shares the arena does. Called by control.c, line_client.c and line_record.c.
#ifndef XSOCK_PROXY_SHARE_H
#define XSOCK_PROXY_SHARE_H

#include <stdbool.h>

#include "xsock/framed/layout.h"

struct aw_share {
	/*
	 * the arena, opened by this process: the lock ends with it; -1: the slot is this process's alone
	 */
	int fd;
	unsigned number;
	struct aw_arena_table *table;
	struct aw_slot *slot;
};

/*
 * Takes a share of slot number, which belongs to the socket with inode ino. The caller keeps
 * memory, the arena's fd. Returns 0 or an errno.
 */
int aw_share_take(struct aw_share *share, int memory, unsigned number, uint64_t ino);
/*
 * Copies slot number from an arena that another user's process may write to. The sending program is
 * the only process that holds the slot, and gives it up. Returns 0 or an errno.
 */
int aw_share_copy(struct aw_share *share, int memory, unsigned number);
/* Makes a slot that no other process has. Returns 0 or an errno. */
int aw_share_make(struct aw_share *share);
void aw_share_put(struct aw_share *share);
/* Returns whether no other process holds the slot. */
bool aw_share_is_alone(const struct aw_share *share);

#endif
