// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fdtab.c, fdtab_change.c and fdtab_fork.c have these functions of each other.
#ifndef XSOCK_PROCESS_FDTAB_IMPL_H
#define XSOCK_PROCESS_FDTAB_IMPL_H

#include "xsock/process/fdtab.h"

/* A number's place in the table. */
struct aw_entry {
	struct aw_sock *sock;
	/* Of a LEAVING number: the socket that it had, and the one that it is to get; both held. */
	struct aw_sock *before, *next;
	unsigned turn; /* the change under way; 0: none */
	enum aw_fd_state was; /* the state before it, where the number had no socket */
};
extern struct aw_entry aw_fdtab_entries[AW_FDTAB_MAX] AW_GUARDED_BY(aw_fdtab_mutex);

/* fdtab.c: a number joins a socket, or leaves its socket and is what `then` says. */
void aw_fdtab_attach(int fd, struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex);
void aw_fdtab_detach(int fd, enum aw_fd_state then) AW_REQUIRES(aw_fdtab_mutex);
/* fdtab.c: the table has fd in it from now on. */
void aw_fdtab_note_number(int fd) AW_REQUIRES(aw_fdtab_mutex);
/* fdtab.c: makes fd, which has no socket, what state says. */
void aw_fdtab_store_state(int fd, enum aw_fd_state state);
/*
 * fdtab_change.c: hold_users holds sock, which fd leaves, until no thread is in its
 * record by that number; release_left releases those that no thread is in any more.
 */
void aw_fdtab_hold_users(struct aw_sock *sock, int fd) AW_REQUIRES(aw_fdtab_mutex);
void aw_fdtab_release_left(void) AW_REQUIRES(aw_fdtab_mutex);
/* fdtab_change.c: ends the change of a number that the kernel has given to another file. */
void aw_fdtab_cancel_change(int fd) AW_REQUIRES(aw_fdtab_mutex);
/* fdtab_change.c: waits while fd is LEAVING, as aw_fdtab_await_left. */
void aw_fdtab_await_left_locked(int fd) AW_REQUIRES(aw_fdtab_mutex);
/* fdtab_change.c, called in the child of a fork: ends the changes of the parent's threads below fd `end`. */
void aw_fdtab_end_parents_changes(int end) AW_REQUIRES(aw_fdtab_mutex);
/* fdtab_fork.c: makes fd a duplicate of by; keeps FD_CLOEXEC. False: fd is as before. */
bool aw_fdtab_replace(int fd, int by);

/* fdtab_fork.c: called before the lock is taken. Finds out whether this is the child of a clone(2). */
void aw_fdtab_notice_fork(void);
/* fdtab_fork.c: called before the lock is taken. Registers the handlers of pthread_atfork, once. */
void aw_fdtab_handle_forks(void);

/*
 * fdtab.c: in the child of a fork, makes anew what threads wait for, which are not in the child;
 * and the lock, unless the calling thread has it.
 */
void aw_fdtab_renew(bool locked) AW_REQUIRES(aw_fdtab_mutex);
/* fdtab_fork.c: how many forks of this process and its forefathers are over; it wraps around. */
extern _Atomic(uint16_t) aw_fdtab_forks_over;
/* fdtab_fork.c: in the child of a fork: forgets the parent's threads that were in a step. Returns whether there was one. */
bool aw_fdtab_forget_steps(void) AW_REQUIRES(aw_fdtab_mutex);
/* fdtab.c: returns whether a socket is STARTING. */
bool aw_fdtab_any_starting(void) AW_REQUIRES(aw_fdtab_mutex);

#endif
