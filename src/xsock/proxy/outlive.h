// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Signals of the proxy process, which carries connections of programs that may have ended.
#ifndef XSOCK_PROXY_OUTLIVE_H
#define XSOCK_PROXY_OUTLIVE_H

/*
 * Ignores every signal that a service manager, a terminal or a timer sends to the program's group: the proxy process ends
 * when its connections have, as the kernel's TCP does. Signals of the proxy process's own faults, SIGCHLD and SIGCONT keep
 * the default. All are unblocked.
 */
void aw_outlive_signals(void);

#endif
