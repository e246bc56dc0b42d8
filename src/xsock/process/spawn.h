// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Starts the proxy process unnoticed by the program: it gets no SIGCHLD, and wait(2) finds no
// child.
#ifndef XSOCK_PROCESS_SPAWN_H
#define XSOCK_PROCESS_SPAWN_H

#include <limits.h>
#include <stdbool.h>

/* Finds the proxy process's file, before the program may call chroot(2) or chdir(2). */
void aw_spawn_find_proxy(void);

/*
 * Starts the proxy process with control as its fd AW_PROXY_CONTROL. Returns 0 or an errno. The
 * caller holds no lock.
 */
int aw_spawn_proxy(int control);

/* Writes the path of the file of that name which lies beside this library. False: it cannot be found out. */
bool aw_spawn_find_beside(const char *name, char path[PATH_MAX]);

#endif
