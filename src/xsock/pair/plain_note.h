// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Notes why a connection of this process is plain TCP: a line in the log at info, and a word for `anywarp sockets --status`. A note costs
// connect(2) or accept(2) one fstat(2). In a sandbox, and in the child of a vfork, there is the line
// alone. Callers hold no lock; each function keeps errno.
#ifndef XSOCK_PAIR_PLAIN_NOTE_H
#define XSOCK_PAIR_PLAIN_NOTE_H

#include <sys/socket.h>

#include "xsock/pair/plain.h"

void aw_plain_note(int fd, enum aw_plain why);
/*
 * Makes the memory of the notes unless it is there. Called where the process comes to use mode `auto`, so that its number of fds
 * does not depend on how its connections turn out.
 */
void aw_plain_prepare(void);
/*
 * libc's connect(2) of fd to addr has returned result: notes why where there is, or will be, a connection. A server that is not known
 * because it is on another host is noted so.
 */
void aw_plain_note_connect(int fd, const struct sockaddr *addr, enum aw_plain why, int result);

#endif
