// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The signals of the proxy process, which has connections of programs that may have exited. Called
// by main.c.
#ifndef XSOCK_PROXY_OUTLIVE_H
#define XSOCK_PROXY_OUTLIVE_H

/*
 * Ignores every signal that a service manager, a terminal or a timer sends to the program's process
 * group: the proxy process lives as long as its connections, as the kernel's TCP does. Signals of
 * this process's own faults, SIGCHLD and SIGCONT keep the default action. All signals are
 * unblocked.
 */
void aw_outlive_signals(void);

#endif
