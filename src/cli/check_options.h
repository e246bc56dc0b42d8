// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The options of 'anywarp check', and the variables that they become.
#ifndef CLI_CHECK_OPTIONS_H
#define CLI_CHECK_OPTIONS_H

#include "cli/launch.h"
#include "cli/sweep.h"

#include <stdbool.h>

struct check_options {
	struct launch launch;
	bool is_explain; // the reasons of failed calls alone, without reports
	bool halt_on;
	bool is_sweep;
	unsigned long exit_status; // where a rule was broken; 0: the program's own
	const char *rules, *suppress, *vary, *like, *faults, *seed; // NULL: not given
	const char *json, *sarif; // paths of files, likewise
	const char *of_reports; // the first option that wants reports, likewise
	const char *of_device; // the first option that is of anywarp's device alone, likewise
	const char *of_sweep; // the first option that is of --sweep alone, likewise
	const char *of_one_run; // the first option that --sweep does not have, likewise
	struct cli_sweep sweep;
	char **command; // ended by NULL
};

// Reads the options. False after an error, which was printed, and where the help was asked for.
__attribute__((warn_unused_result)) bool aw_check_options_parse(char **argv,
								struct check_options *options);

// Sets ANYWARP_CHECK, and the variables of the plan of faults. False after an error, which was printed.
__attribute__((warn_unused_result)) bool aw_check_options_export(
	const struct check_options *options);

#endif
