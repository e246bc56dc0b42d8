// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parts that 'run' and 'sockets' share: the options of both, the environment that puts our
// libraries before the system's, and becoming the program. Errors go to standard error.
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include "base/setting.h"

#include <limits.h>
#include <stdbool.h>

struct launch {
	const char *who; // "anywarp run", before every error
	const char *mpa; // the list, or NULL
	bool helped; // the help was asked for, and printed
	bool keeps_libraries; // LD_LIBRARY_PATH stays as it is: the program runs on the system's libraries
};

enum launch_option {
	LAUNCH_OTHER, // not an option of both
	LAUNCH_TAKEN,
	LAUNCH_WRONG, // an error, which was printed
};

// True when *arg is "--name value" or "--name=value". Then *arg is left at its last word; value is
// NULL where there is none.
bool aw_launch_value(char ***arg, const char *name, const char **value);

// Sets the setting's variable to the word, which may be NULL, or wrong.
enum launch_option aw_launch_setting(const char *who, const char *option, enum aw_setting setting,
				     const char *word);

// Takes --log or --mpa at *arg.
enum launch_option aw_launch_option(struct launch *launch, char ***arg);

// Sets LD_LIBRARY_PATH, unless the launch keeps it, and the variables of the options; dir becomes the directory of the
// libraries.
__attribute__((warn_unused_result)) bool aw_launch_environment(const struct launch *launch,
							       char dir[PATH_MAX]);

// Has the program load the library in dir before those that are preloaded already, but for a sanitizer's runtime (runtime.h).
// Every error begins with who.
__attribute__((warn_unused_result)) bool aw_launch_preload(const char *who, const char *dir,
							   const char *library);

// Writes the path of the program: of one in PATH, the first for which access(2) grants the mode. False when there is none.
bool aw_launch_find(const char *name, int mode, char path[PATH_MAX]);
// Opens the program that would be executed to read it, and writes its path. -1 when there is none, or it cannot be read.
int aw_launch_open(const char *name, char path[PATH_MAX]);

// Becomes the program, or prints why not and returns the exit status.
int aw_launch_exec(const struct launch *launch, char **command);

#endif
