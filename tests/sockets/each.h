// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A use of each wrapper, by a program that finds itself at an unusual place: before any constructor, or on a small stack.
#ifndef SOCKETS_EACH_H
#define SOCKETS_EACH_H

#include <stdbool.h>

struct each_use {
	const char *name;
	bool (*use)(void); /* false: the call has not done what it does beside TCP */
};

extern const struct each_use each_uses[]; /* ends with a name of NULL */

/* Connects to the server that echoes, and passes five bytes each way if has_begun. Every use is of a connection of its own. */
void each_prepare(int port, bool has_begun);
void each_end(void);
/* Calls each use once, on a new and on an old connection. Ends the process with a line where one fails. */
void each_use_all(int port);
/* Returns a connection that has begun. */
int each_inheritance(int port);
/* Returns whether the server echoes on fd. */
bool each_is_alive(int fd);

#endif
