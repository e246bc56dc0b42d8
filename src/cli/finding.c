// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Prints the lines of 'anywarp doctor' and remembers whether one was a failure.
#include "cli/finding.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const kind_names[] = {
	[FINDING_OK] = "ok",
	[FINDING_WARN] = "warn",
	[FINDING_FAIL] = "fail",
};

static bool any_failed;

void aw_finding_print(enum finding kind, const char *what, const char *remedy, const char *why, ...)
{
	va_list args;

	if (kind == FINDING_FAIL)
		any_failed = true;
	printf("%-4s  %-16s  ", kind_names[kind], what);
	va_start(args, why);
	vprintf(why, args);
	va_end(args);
	if (remedy)
		printf("; remedy: %s", remedy);
	putchar('\n');
	fflush(stdout);
}

bool aw_finding_any_failed(void)
{
	return any_failed;
}
