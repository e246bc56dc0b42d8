// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Shared by the files of this directory: a half of a record while a thread works on it. A thread
// takes a half's lock with signals and cancellation held back (process/shield.h), and at most one
// half at a time.
#ifndef XSOCK_FRAMED_SLOT_H
#define XSOCK_FRAMED_SLOT_H

#include "xsock/framed/arena.h"
#include "xsock/framed/calls.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/shield.h"

struct aw_half {
	struct aw_shield shield;
	struct aw_slot *slot;
	pthread_mutex_t *lock;
	int fd; /* the thread is one of its users (process/fdtab.h) */
};

/* The process has given up its slots. */
extern _Atomic(bool) aw_slots_released;
/* The process is giving up the arena: no thread begins to work by a copy of a number's file. */
extern _Atomic(bool) aw_slots_given_up;

/*
 * Locks a half of the connection whose TCP socket is fd, which the caller keeps open. Returns 0, or an errno if the connection is
 * broken; after an error nothing is locked. EBADF: the process has given up the slot's memory.
 */
int aw_half_enter(struct aw_half *half, struct aw_slot *slot, pthread_mutex_t *lock, int fd);
/* The same for a call of the program's. EBADF: fd has become another file, or was closed. */
int aw_half_enter_for(struct aw_half *half, struct aw_slot *slot, pthread_mutex_t *lock, int fd);
/* The one or the other: fd is a copy that the library has kept, or the program's. */
int aw_half_enter_either(struct aw_half *half, struct aw_slot *slot, pthread_mutex_t *lock, int fd);
void aw_half_leave(const struct aw_half *half);
/*
 * Returns whether TCP has yet to take the rest of an FPDU, as far as that is known without the lock. A thread sees what
 * its own calls have left.
 */
static inline bool aw_slot_owes(const struct aw_slot *slot)
{
	return slot->record.tx.rest && !slot->record.tx.reply;
}
/* The same where it is this process that has to see to the rest: its thread flushes, or no other process has the slot. */
bool aw_slot_has_debt(const struct aw_slot *slot);
/* Sends the Terminate that reports a protocol error of the peer. The caller has no half. */
void aw_slot_send_terminate(struct aw_slot *slot, int fd);

/*
 * The values that the program has set on the TCP socket before the connection is FRAMED; later the
 * record has them.
 */
struct aw_slot_options {
	bool in_line; /* SO_OOBINLINE */
	int wanted; /* SO_RCVLOWAT */
	int peek_offset; /* SO_PEEK_OFF; 0 or more: no record can serve */
};

struct aw_slot_options aw_slot_read_options(int fd);
void aw_slot_take_options(struct aw_slot *slot, int fd, struct aw_slot_options options);
/*
 * Sets near's options to the record's values, and the record's to those that the proxy process
 * needs: it reads each byte as it comes.
 */
void aw_slot_give_options(struct aw_slot *slot, int fd, int near);

/*
 * A thread calls begin_wait before it waits in a call and leave_wait afterwards. In between
 * aw_slot_kept() returns the fd that was kept for it if the program's was closed; -1: none.
 */
/* Called before a copy of an fd is closed, which a thread has kept beyond the close; set by preload/begin.c. */
typedef void aw_slot_finish_fn(struct aw_slot *slot, int copy);
extern aw_slot_finish_fn *aw_slot_finish;
/* Returns whether a thread waits in a read or write. */
bool aw_slot_is_awaited(const struct aw_slot *slot);
void aw_slot_begin_wait(struct aw_slot *slot);
void aw_slot_leave_wait(struct aw_slot *slot);
int aw_slot_kept(const struct aw_slot *slot);
/* Keeps a copy of fd if threads wait on it: fd is about to become another file. */
void aw_slot_keep(struct aw_slot *slot, int fd);
/* Forgets the waiting threads, in the child of a fork: they are its parent's. */
void aw_slot_forget_waiters(void) AW_REQUIRES(aw_fdtab_mutex);
/*
 * A process that gives up the arena waits until no thread works by a copy, and drops the copies when the arena has gone: waiting threads
 * go on by the pairs.
 */
void aw_slot_drain_copies(void);
void aw_slot_drop_copies(void);

/*
 * Notes the failure err, a negative errno, of a call that has moved bytes, which the kernel reports once: the next call
 * returns it.
 */
void aw_slot_note_failure(struct aw_slot *slot, ssize_t err);
/* Returns the failure that was noted, once, as a negative errno, or err. */
ssize_t aw_slot_take_failure(struct aw_slot *slot, ssize_t err);

/* Forgets the threads that flush, in the child of a fork: they are its parent's. */
void aw_slot_forget_flushes(void) AW_REQUIRES(aw_fdtab_mutex);

/*
 * Starts a thread that sends the rest of an FPDU when TCP has room for it, and the stream's end where it is due. False: there is
 * none, and the caller, without the lock then, has the connection bridged, or the next write sends the rest. The caller has the lock
 * of the tx half: fd is the TCP socket.
 */
bool aw_slot_flush_later(struct aw_slot *slot, int fd);
/* Ends that thread and its hold on the slot, for a caller that lets no thread begin to work on the slot. */
void aw_slot_stop_flush(struct aw_slot *slot);
/* The same for all slots. */
void aw_slot_stop_flushes(void);

#endif
