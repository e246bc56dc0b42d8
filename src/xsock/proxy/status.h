// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Serves `anywarp sockets --status PID`: a socket for each process, sockets.PID, in anywarp-UID of
// XDG_RUNTIME_DIR or /tmp. The proxy process writes a line for each connection to a client and
// closes. Called by main.c and control.c.
#ifndef XSOCK_PROXY_STATUS_H
#define XSOCK_PROXY_STATUS_H

#include <stdbool.h>
#include <sys/types.h>

/* Opens the socket for pid unless it is open. A failure is logged. */
void aw_status_serve(pid_t pid);
/* Closes the sockets of processes that have exited; all: of every process. */
void aw_status_review(bool all);

#endif
