// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The files that a device's driver would show in /dev and /sys, for programs that look there
// themselves, and the library that leads the programs to them (paths_preload.c).
#ifndef CLI_PATHS_H
#define CLI_PATHS_H

#include <limits.h>
#include <stdbool.h>

#define CLI_PATHS_LIB "libanywarp-paths.so"

// Makes the files in a directory of the user's and sets ANYWARP_PATHS and LD_PRELOAD for the
// program. dir is where our libraries are. Every error begins with who. False after an error, which
// is printed.
__attribute__((warn_unused_result)) bool aw_paths_export(const char *who, const char *dir);

enum paths_base {
	PATHS_AS_WANTED,
	PATHS_FALLBACK, // XDG_RUNTIME_DIR is set, and of no use
	PATHS_NOWHERE, // the user cannot write to the directory
};

// Writes the directory in which they would be made.
enum paths_base aw_paths_base(char base[PATH_MAX]);

#endif
