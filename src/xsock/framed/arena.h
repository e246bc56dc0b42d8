// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Records in memory that processes share: one sealed memfd for a process and those that it forks or becomes by exec.
// Nothing in it is a pointer. A slot belongs to the processes that hold it; the last one that lets go of it frees it.
#ifndef XSOCK_FRAMED_ARENA_H
#define XSOCK_FRAMED_ARENA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "xsock/framed/layout.h"

/* Makes the arena if there is none. False: there can be none. */
bool aw_arena_open(void);
/* The arena behind fd, which has come through an exec. False: it is none. */
bool aw_arena_adopt(int fd);
/* -1: there is none. */
int aw_arena_fd(void);
/* The same, for what this process becomes; -1 also where it has other rights than who made the arena. */
int aw_arena_bequest(void);

/* A slot for the socket with this inode, held once, its locks made. NULL: none is free. */
struct aw_slot *aw_arena_take(uint64_t ino);
/* Slot number of that socket, as another process has told it; NULL: it is not. */
struct aw_slot *aw_arena_find(unsigned number, uint64_t ino);
/* Nobody else holds it. */
bool aw_arena_is_alone(const struct aw_slot *slot);
/* The slot is in a bridge of this proxy process's, for all who hold it; and how many have come to that. */
void aw_arena_bridge(struct aw_slot *slot, uint64_t proxy);
uint32_t aw_arena_bridges(void);
unsigned aw_arena_number(const struct aw_slot *slot);
/* Held once more, or less. */
void aw_arena_share(struct aw_slot *slot);
void aw_arena_unshare(struct aw_slot *slot);
/* What a process holds it claims, so that it is free again when the process is killed; leave: neither any more. */
bool aw_arena_claim(const struct aw_slot *slot);
/* Whether one of the user ids of a process (real, effective, saved) is that of who made the arena; also where there is none. */
bool aw_arena_is_of(const uid_t users[3]);
/* The process has no slot any more, and one thread: it has nothing of the arena then, and may open another. */
void aw_arena_abandon(void);
/* In the child of a fork: the claims are its parent's. */
void aw_arena_disclaim(void);
void aw_arena_leave(struct aw_slot *slot);

#endif
