// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A user may require TLS (ANYWARP_TLS=require): no byte of a socket in mode `on` then leaves, or is read, without it. The
// proxy process carries each connection (docs/tls.md), unless ANYWARP_SOCKETS_RECORD is tls, and a socket that it cannot carry is refused. The library keeps the user's
// settings as they were when the program began, since programs clear and overwrite their environment.
#ifndef XSOCK_PROCESS_PROTECT_H
#define XSOCK_PROCESS_PROTECT_H

#include <stdbool.h>
#include <stddef.h>

/* Reads the environment, once, before the program runs. Returns why the program must not begin, or NULL. */
const char *aw_protect_begin(void);

/* For aw_protect_is_on. Fixed once the library is loaded. */
extern bool aw_protect_required;

static inline bool aw_protect_is_on(void)
{
	return __builtin_expect(aw_protect_required, 0);
}

/*
 * Returns whether TLS is required and fd is a TCP socket that the table does not know: it was made by a call that no wrapper has seen,
 * or has been left plain before. Keeps errno.
 */
bool aw_protect_covers(int fd);

/* Discards what has come on fd, which has to be shut down or to have ended: none of it was proven to be the peer's. Keeps errno. */
void aw_protect_discard(int fd);

/* The value of a kept variable, or NULL. */
char *aw_protect_getenv(const char *name);

/*
 * The kept variables, for the environment of another program. count: how many there are; owns: the variable, of the form
 * "name=value", is one of them, by its name; add: writes pointers to them, and returns their number. Where TLS is not required
 * there is none.
 */
size_t aw_protect_count(void);
bool aw_protect_owns(const char *variable);
size_t aw_protect_add(char **env);

/*
 * Returns the LD_PRELOAD that the program began with, as a variable, if theirs, another program's (NULL: it has none), lacks this
 * library; else NULL.
 */
const char *aw_protect_preload(const char *theirs);

#endif
