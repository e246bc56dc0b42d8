// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The program that 'anywarp check' starts and waits for.
#ifndef CLI_CHECK_START_H
#define CLI_CHECK_START_H

#include "cli/launch.h"

struct check_end {
	bool was_started;
	int status; // as of waitpid(2); of a program that was not started, the exit status that tells why, which was printed
};

// Starts the program and waits for its end. A signal to end that a process sends to the command is passed on; one of the terminal
// goes to both.
void aw_check_start(const struct launch *launch, char **command, struct check_end *end);

#endif
