// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fdtab.c and fdtab_fork.c have these functions of each other.
#ifndef XSOCK_PROCESS_FDTAB_IMPL_H
#define XSOCK_PROCESS_FDTAB_IMPL_H

#include "xsock/process/fdtab.h"

/* fdtab_fork.c: called before the lock is taken. Finds out whether this is the child of a clone(2). */
void aw_fdtab_notice_fork(void);

/*
 * fdtab.c: in the child of a fork, makes anew what threads wait for, which are not in the child;
 * and the lock, unless the calling thread has it.
 */
void aw_fdtab_renew(bool locked);
/* fdtab_fork.c: how many forks of this process and its forefathers are over; it wraps around. */
extern _Atomic(uint16_t) aw_fdtab_forks_over;
/* fdtab.c: wakes the threads in aw_fdtab_await_change. The caller holds the lock. */
void aw_fdtab_note_change(void);
/* fdtab.c: returns whether a socket is STARTING. The caller holds the lock. */
bool aw_fdtab_any_starting(void);

#endif
