// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The file to which libanywarp-check.so appends reports, and the command's summary of it. A report is three lines: "K" and the name of
// its rule, "J" and a JSON object, "S" and a result of SARIF. Beside reports there is "P" and a number for each process that has
// loaded the library, and "R", a rule and a number for repetitions of a report at a process's end.
#ifndef CLI_CHECK_SUMMARY_H
#define CLI_CHECK_SUMMARY_H

#include "check/report/rule.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

struct check_summary {
	unsigned long processes; // that have loaded the library
	unsigned long reports[AW_RULES];
	unsigned long again[AW_RULES]; // how often they were repeated
	unsigned long faults, risks; // the sums of the reports
};

// Counts the lines. False where the file cannot be read; then errno tells why.
__attribute__((warn_unused_result)) bool aw_check_summary_read(const char *path,
							       struct check_summary *summary);

// Prints it to standard error.
void aw_check_summary_print(const struct check_summary *summary);

// Write the reports as a JSON array, or as a document of SARIF 2.1.0. False where an error occurred; then errno tells which.
__attribute__((warn_unused_result)) bool aw_check_summary_json(const char *path, FILE *output);
__attribute__((warn_unused_result)) bool aw_check_summary_sarif(const char *path, FILE *output);

#endif
