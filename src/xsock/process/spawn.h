// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Starts the proxy process's process so that the program does not notice: no SIGCHLD, no child for wait(2).
#ifndef XSOCK_PROCESS_SPAWN_H
#define XSOCK_PROCESS_SPAWN_H

/* control becomes its fd AW_PROXY_CONTROL. 0 or an errno. */
int aw_spawn_proxy(int control);

#endif
