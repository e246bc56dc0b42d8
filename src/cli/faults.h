// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The options --faults and --seed of 'run' and 'check'.
#ifndef CLI_FAULTS_H
#define CLI_FAULTS_H

#include <stdbool.h>

// Puts the plan and its seed, which may be NULL, into the environment of the program. Prints what is wrong with them, with the
// part of the plan underlined. Has all bytes go by TCP where the plan has faults of the wire, and says so. has_wire: the program
// runs over anywarp's libraries, whose connections have a wire; false: such a plan is wrong.
__attribute__((warn_unused_result)) bool aw_cli_faults(const char *who, const char *spec,
						       const char *seed, bool has_wire);

#endif
