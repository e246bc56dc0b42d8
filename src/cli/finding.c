// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Prints the findings of 'anywarp doctor' and remembers whether one was a failure.
#define _GNU_SOURCE // vasprintf
#include "cli/finding.h"

#include "cli/cli.h"
#include "cli/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const kind_names[] = {
	[FINDING_OK] = "ok",
	[FINDING_WARN] = "warn",
	[FINDING_FAIL] = "fail",
};

static bool any_failed, is_json, is_first;

void aw_finding_json(bool first)
{
	is_json = true;
	is_first = first;
	if (first)
		fputs("{\"findings\": [", stdout);
}

bool aw_finding_is_json(void)
{
	return is_json;
}

void aw_finding_print(enum finding kind, const char *what, const char *remedy, const char *why, ...)
{
	va_list args;
	char *text;
	int len;

	if (kind == FINDING_FAIL)
		any_failed = true;
	va_start(args, why);
	len = vasprintf(&text, why, args);
	va_end(args);
	if (len < 0) {
		fprintf(stderr, "anywarp doctor: out of memory\n");
		exit(CLI_FAILED);
	}
	if (is_json) {
		printf("%s{\"result\": \"%s\", \"what\": ", is_first ? "" : ", ", kind_names[kind]);
		is_first = false;
		aw_json_string(what);
		fputs(", \"finding\": ", stdout);
		aw_json_string(text);
		fputs(", \"remedy\": ", stdout);
		if (remedy)
			aw_json_string(remedy);
		else
			fputs("null", stdout);
		putchar('}');
	} else {
		printf("%-4s  %-16s  %s%s%s\n", kind_names[kind], what, text,
		       remedy ? "; remedy: " : "", remedy ? remedy : "");
	}
	free(text);
	fflush(stdout);
}

bool aw_finding_any_failed(void)
{
	return any_failed;
}

void aw_finding_end(bool runs)
{
	if (is_json)
		printf("], \"runs\": %s}\n", runs ? "true" : "false");
	else if (runs)
		puts("\nRDMA programs run over anywarp here: anywarp run -- PROGRAM");
	else
		puts("\nRDMA programs do not run over anywarp here; see the lines with 'fail'.");
}
