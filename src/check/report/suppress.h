// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Suppressions: a file with one rule a line, which is not reported at all, or RULE:GLOB, which is not reported where a function, a
// source file or a library of the call's stack matches. '#' begins a comment.
#ifndef CHECK_REPORT_SUPPRESS_H
#define CHECK_REPORT_SUPPRESS_H

#include "check/report/rule.h"
#include "check/report/trace.h"

#include <stdbool.h>
#include <stdint.h>

#define AW_SUPPRESS_MAX 512 /* lines with a rule */
#define AW_SUPPRESS_BYTES_MAX 32768
#define AW_SUPPRESS_WHY_MAX 1024

struct aw_suppressions {
	unsigned count;
	struct {
		enum aw_rule rule;
		const char *glob;
	} lines[AW_SUPPRESS_MAX];
	uint64_t everywhere; /* the rules that have a line without a glob */
	char text[AW_SUPPRESS_BYTES_MAX];
};

/*
 * Reads the file. False where it cannot be read or is wrong: then why names file and line and what is right, and nothing is
 * suppressed.
 */
__attribute__((warn_unused_result)) bool aw_suppress_read(const char *path,
							  struct aw_suppressions *suppressions,
							  char why[AW_SUPPRESS_WHY_MAX]);

/* True where a line is about the rule and one of these frames. */
bool aw_suppress_matches(const struct aw_suppressions *suppressions, enum aw_rule rule,
			 const struct aw_trace *trace);

#endif
