// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Records in memory that processes share: one sealed memfd for a process and those that it forks or
// becomes by exec. The memory holds no pointers. A slot belongs to the processes that hold it; the
// last one that gives it up frees it. Functions here take no lock but short ones of their own.
// Called by this directory and preload/.
//
// A slot has a robust lock for each half of its record. The process that gets the lock of one
// killed in the tx half goes on by the note of record/intent.h, as TCP_INFO and SIOCOUTQ say how
// much TCP has taken. A death in the rx half, or after TCP took a part of an FPDU, breaks the
// connection. Each slot counts its processes: the parent counts the child before a fork or spawn.
// A variable of an exec has a bit for each slot; the new program has the record of each slot whose
// inode is among its fds. Each process also locks the byte of each slot that it holds (fcntl),
// which the kernel releases with the process; once in 64 takes, or when no slot is free, a process
// frees the slots that nobody has locked (aw_arena_sweep). A child's hold is marked until the
// child has locked its slots, since the parent may sweep before the child has run. The arena is
// mapped by stretches of 64 slots (9.5 MB), because a program may limit its address space.
//
// Records are shared because a bridge at each fork costs too much: redis with 50 clients fell from
// 82,000 to 50,000 requests a second at its first BGSAVE, and a fork with a thousand connections
// took 211 ms instead of 1 ms.
#ifndef XSOCK_FRAMED_ARENA_H
#define XSOCK_FRAMED_ARENA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "xsock/framed/layout.h"

/* Makes the arena unless there is one. False: it cannot be made. */
bool aw_arena_open(void);
/* Uses the arena behind fd, which an exec has left open. False: fd is no arena. */
bool aw_arena_adopt(int fd);
/* Returns the arena's fd, or -1. */
int aw_arena_fd(void);
/*
 * Returns the arena's fd for a program that this process execs; -1: none, or this process's user or
 * group is not that of the process that made the arena.
 */
int aw_arena_fd_for_exec(void);

/*
 * Takes a free slot for the socket with this inode: initialised, locked and held once. NULL: none
 * is free.
 */
struct aw_slot *aw_arena_take(uint64_t ino);
/* Returns slot number, of those below AW_ARENA_SLOTS. NULL: no process holds it, or it cannot be mapped. */
struct aw_slot *aw_arena_find(unsigned number);
/* Returns whether no other process holds the slot. */
bool aw_arena_is_alone(const struct aw_slot *slot);
/*
 * Notes that this proxy process has bridged the slot, for all processes that hold it.
 * aw_arena_bridges() returns how many slots have been bridged so far.
 */
void aw_arena_bridge(struct aw_slot *slot, uint64_t proxy);
uint32_t aw_arena_bridges(void);
/* Returns AW_ARENA_SLOTS for a slot of an arena that the process has given up. */
unsigned aw_arena_number(const struct aw_slot *slot);
static inline bool aw_arena_has(const struct aw_slot *slot)
{
	return aw_arena_number(slot) < AW_ARENA_SLOTS;
}
/* The inode of the slot's TCP socket. */
uint64_t aw_arena_ino(const struct aw_slot *slot);
/* Adds a hold for one more process, or gives one up. */
void aw_arena_share(struct aw_slot *slot);
void aw_arena_unshare(struct aw_slot *slot);
/*
 * Adds a hold for a child that is about to be made. The child calls arrive; or its parent unexpect, where there is no child. No sweep
 * frees the slot in between. arrive returns as aw_arena_claim.
 */
void aw_arena_expect(struct aw_slot *slot);
bool aw_arena_arrive(const struct aw_slot *slot);
void aw_arena_unexpect(struct aw_slot *slot);
/* Locks the slot's byte for this process, so that the slot is freed when the process is killed. */
bool aw_arena_claim(const struct aw_slot *slot);
/*
 * Returns whether one of a process's user ids (real, effective, saved) owns the arena; true without
 * an arena.
 */
bool aw_arena_is_of(const uid_t users[3]);
/* Frees the slots of killed processes, which have not given them up, and their pages. */
void aw_arena_sweep(void);
/*
 * Gives up and closes the arena, so that the process may make another. No thread of the process works on a record, and none begins
 * to. Slots stay valid addresses, of empty memory.
 */
void aw_arena_abandon(void);
/* Forgets the locks on slots: in the child of a fork they are its parent's. */
void aw_arena_disclaim(void);
/* Makes the lock anew, in the child of a fork: a thread of its parent's may have held it. */
void aw_arena_renew_lock(void);
/*
 * Adds a hold of this process's: the slot's byte stays locked until the last of them is given up. aw_arena_leave
 * gives one up.
 */
void aw_arena_hold(struct aw_slot *slot);
void aw_arena_leave(struct aw_slot *slot);
/* The same, unless the hold is the slot's last: of several processes that leave a slot at one moment one gets false. */
bool aw_arena_leave_to_others(struct aw_slot *slot);

#endif
