// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds out whether a program that is about to be started will preload this library, and so can go
// on with framed connections. Callers hold no lock.
#ifndef XSOCK_PRELOAD_PROGRAM_H
#define XSOCK_PRELOAD_PROGRAM_H

#include <stdbool.h>

/* A program as the exec calls name it, and its environment. */
struct aw_program {
	int dir; /* directory of a relative path; with an empty path, the program's file */
	const char *path;
	/*
	 * A path without a slash is searched in PATH, and the shell runs a file that is no program.
	 */
	bool searched;
	char *const *env;
};

/* Finds this library's file name, once. */
void aw_program_find_library(void);

/* Returns whether the program preloads this library; false if that cannot be found out. */
bool aw_program_preloads(const struct aw_program *program);

#endif
