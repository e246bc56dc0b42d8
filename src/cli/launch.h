// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What 'run' and 'sockets' share: the options of both, the environment that puts our libraries
// before the system's, and becoming the program. Errors are told on standard error.
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include <limits.h>
#include <stdbool.h>

struct launch {
	const char *who; // "anywarp run", before every error
	const char *log; // the level, or NULL
	const char *mpa; // the list, or NULL
};

enum launch_option {
	LAUNCH_OTHER, // not an option of both
	LAUNCH_TAKEN,
	LAUNCH_WRONG, // told
};

// Whether *arg is "--name value" or "--name=value". Then *arg is left at its last word; value is
// NULL where there is none.
bool aw_launch_value(char ***arg, const char *name, const char **value);

// Takes --log or --mpa at *arg.
enum launch_option aw_launch_option(struct launch *launch, char ***arg);

// Sets LD_LIBRARY_PATH and what the options say; dir is where the libraries are.
__attribute__((warn_unused_result)) bool aw_launch_environment(const struct launch *launch,
							       char dir[PATH_MAX]);

// Has the program load the library in dir before what is preloaded already; who comes before every error.
__attribute__((warn_unused_result)) bool aw_launch_preload(const char *who, const char *dir,
							   const char *library);

// Becomes the program, or tells why not and returns the exit status.
int aw_launch_exec(const struct launch *launch, char **command);

#endif
