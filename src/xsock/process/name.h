// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The program's end of a pair is bound to an abstract name that tells both TCP addresses: a process that
// got it by SCM_RIGHTS, or by an exec that lost our environment, still knows what it has.
#ifndef XSOCK_PROCESS_NAME_H
#define XSOCK_PROCESS_NAME_H

#include <stdbool.h>

#include "xsock/process/fdtab.h"

void aw_name_bind(int near, const struct aw_sock *sock, ino_t ino);
/*
 * Whether a process of our own user or of root's has made fd, a socket: the kernel keeps who that was. Anybody may give a
 * socket such a name and pass it to us.
 */
bool aw_name_is_believed(int fd);
/* Whether fd, of which the table knows nothing, turns out to be a bridged one; from here on it is. */
bool aw_name_adopt(int fd);

#endif
