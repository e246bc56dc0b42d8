// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Functions that one file of wrappers defines and another one calls. Callers hold no lock.
#ifndef XSOCK_WRAP_WRAP_H
#define XSOCK_WRAP_WRAP_H

#include <stdbool.h>

#include "base/log.h"

/*
 * socket.c: the program has received fd by SCM_RIGHTS. Forgets what fd was before, and adds it to
 * the table if it is bridged or a listener in iWARP mode.
 */
void aw_socket_received(int fd);
/*
 * process.c: begins the connections that are being made and counts the child among the holders of records, before
 * a fork that runs no handlers.
 */
void aw_process_prepare_fork(void);
/* process.c: such a fork has failed. Keeps errno. */
void aw_process_fork_failed(void);
/*
 * uring.c: returns whether the program may not use io_uring or io_submit(2), because one of its sockets may be in
 * mode `on`; logs that at level.
 */
bool aw_uring_is_refused(enum aw_log_level level);
/* user.c: makes the system call as the wrapper of the same name does. *known: it is one that changes the user. */
long aw_user_syscall(long number, const long *a, bool *known);
/*
 * sandbox.c: the process is about to enter a seccomp sandbox. Bridges all framed sockets, because
 * from then on a read or write makes no system call but the program's own, and the filter may allow
 * no other.
 */
void aw_sandbox_prepare(void);

#endif
