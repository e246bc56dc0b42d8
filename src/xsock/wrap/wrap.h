// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Functions that one file of wrappers defines and another one calls.
#ifndef XSOCK_WRAP_WRAP_H
#define XSOCK_WRAP_WRAP_H

#include <stdbool.h>

#include "xsock/base/log.h"

/* socket.c: fd has come by SCM_RIGHTS. Finds out whether it is the program's end of a bridge or a TCP socket with a record. */
void aw_socket_received(int fd);
/* socket.c: the program is about to close the listener. Keeps errno. */
void aw_socket_unlisten(int listener);
/* clone.c: whether this process must not have an io_uring, since a socket of its own may be in iWARP mode. Logs a refusal. */
bool aw_uring_is_refused(enum aw_xs_log_level level);
/*
 * sandbox.c: the process is about to enter a seccomp sandbox. From then on a read or write makes no system call but the
 * program's own, the only one that the filter may allow.
 */
void aw_sandbox_prepare(void);

#endif
