// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The name of the program's end of a pair. It is bound to an abstract name that holds both TCP
// addresses, so that a process that receives the fd by SCM_RIGHTS, or by an exec that has lost the
// environment, knows the connection. Callers hold no lock.
#ifndef XSOCK_PROCESS_NAME_H
#define XSOCK_PROCESS_NAME_H

#include <stdbool.h>

#include "xsock/process/fdtab.h"

/* Binds near, whose inode is ino, to the name of sock. */
void aw_name_bind(int near, const struct aw_sock *sock, ino_t ino);
/*
 * Returns whether a process of the same user, or of root, has made fd, a socket. The kernel knows
 * that; any process may bind a socket to such a name and send it to this process.
 */
bool aw_name_is_believed(int fd);
/* Makes fd, which the table does not know, BRIDGED if it has such a name, made by such a process. */
bool aw_name_import(int fd);

#endif
