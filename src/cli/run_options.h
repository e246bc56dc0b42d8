// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The options of 'anywarp run', which 'anywarp check' has as well.
#ifndef CLI_RUN_OPTIONS_H
#define CLI_RUN_OPTIONS_H

#include "cli/launch.h"

// Takes an option of 'anywarp run' at *arg, also one that 'anywarp sockets' has.
enum launch_option aw_run_option(struct launch *launch, char ***arg);

// True where the program gets device files: by the option, or by the persona in the environment.
bool aw_run_needs_device_files(void);

#endif
