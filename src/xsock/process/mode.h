// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The mode of a socket: from the rules of ANYWARP_SOCKETS_RULES, or as the program has set it.
// Callers hold no lock.
#ifndef XSOCK_PROCESS_MODE_H
#define XSOCK_PROCESS_MODE_H

#include <stdbool.h>
#include <sys/socket.h>

#include "xsock/base/rules.h"

/*
 * Returns whether connections of this program may be records: not with ANYWARP_SOCKETS_RECORD=off,
 * nor with an MPA of the user's choice (ANYWARP_MPA).
 */
bool aw_mode_records(void);
/* From now on none is: the process has code whose calls no wrapper sees. */
void aw_mode_end_records(void);
/* Returns how long a connect in `auto` waits for the accept of a server of this host (ANYWARP_SOCKETS_PAIR_MS). */
int aw_mode_pair_ms(void);
/* Returns whether the rules may give a socket that listens, or connects, a mode that is iWARP. */
bool aw_mode_may_iwarp(bool listening);
/* Returns whether the rules may give a socket that connects `on` or `auto`. */
bool aw_mode_may_connect(void);
/* Returns whether connections of a listener at local may be in `on` or `auto`. */
bool aw_mode_may_accept(const struct sockaddr *local);
/* The same for `auto`: they may become pairs. */
bool aw_mode_may_pair(const struct sockaddr *local);
/*
 * Returns the mode that the rules give fd's connection, which this process has accepted or not.
 * remote: the peer's address; NULL: the kernel knows it.
 */
enum aw_xs_mode aw_mode_of(int fd, bool accepted, const struct sockaddr *remote);
/* Returns the mode of a connect of fd to remote: the program's word goes before the rules. */
enum aw_xs_mode aw_mode_of_connect(int fd, const struct sockaddr *remote);
/* Returns the mode that the program has set by setsockopt (*is_set is true), or AW_XS_OFF. */
enum aw_xs_mode aw_mode_of_program(int fd, bool *is_set);
/* Notes that the program has set a socket's mode. The caller may hold the table's lock. */
void aw_mode_note_program(void);

#endif
