// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Which mode the rules of ANYWARP_SOCKETS_RULES, or the program itself, give a socket of this program.
#ifndef XSOCK_PROCESS_MODE_H
#define XSOCK_PROCESS_MODE_H

#include <stdbool.h>
#include <sys/socket.h>

#include "xsock/base/rules.h"

/* Whether connections of this program may be records: not by ANYWARP_SOCKETS_RECORD=off, nor with an MPA of the user's choice. */
bool aw_mode_records(void);
/* Whether any socket that connects (or listens) may be in iWARP mode. */
bool aw_mode_may(bool listening);
/* Whether the connections of a listener at local may be. */
bool aw_mode_may_accept(const struct sockaddr *local);
enum aw_xs_mode aw_mode_connecting(const struct sockaddr *local, const struct sockaddr *remote);
enum aw_xs_mode aw_mode_accepted(const struct sockaddr *local, const struct sockaddr *remote);
/* What the program has asked for by setsockopt, or off. */
enum aw_xs_mode aw_mode_asked(int fd, bool *asked);

#endif
