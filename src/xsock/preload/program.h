// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whether a program that is about to be started will have this library, and so can go on with framed connections.
#ifndef XSOCK_PRELOAD_PROGRAM_H
#define XSOCK_PRELOAD_PROGRAM_H

#include <stdbool.h>

/* A program as exec's calls name it, and the environment that it gets. */
struct aw_program {
	int dir; /* AT_FDCWD, or what path begins at; with an empty path the program's file itself */
	const char *path;
	bool searched; /* by PATH, where path has no slash; a file that is no program is given to the shell */
	char *const *env;
};

/* False where that cannot be known. */
bool aw_program_has_us(const struct aw_program *program);

#endif
