// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cli/process.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool aw_process_number(const char *who, const char *text, pid_t *pid)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || number < 1 || number > 1 << 22) {
		fprintf(stderr, "%s: '%s' is no number of a process\n", who, text);
		return false;
	}
	*pid = (pid_t)number;
	return true;
}

bool aw_process_report(const char *who, enum aw_stat_result result, pid_t pid)
{
	const char *reason = strerror(errno);
	int number = (int)pid;

	switch (result) {
	case AW_STAT_READ:
		break;
	case AW_STAT_ABSENT:
		fprintf(stderr,
			"%s: process %d has no device of anywarp open: does it run under "
			"'anywarp run'?\n",
			who, number);
		break;
	case AW_STAT_GONE:
		fprintf(stderr, "%s: no process %d: 'pgrep -a NAME' finds the number of one\n", who,
			number);
		break;
	case AW_STAT_REFUSED:
		fprintf(stderr, "%s: cannot look at the fds of process %d: %s: ask as root\n", who,
			number, reason);
		break;
	case AW_STAT_STRANGE:
		fprintf(stderr,
			"%s: process %d has statistics of another version of anywarp: ask with "
			"that version's command\n",
			who, number);
		break;
	case AW_STAT_FAILED:
		fprintf(stderr, "%s: cannot read the statistics of process %d: %s\n", who, number,
			reason);
		break;
	}
	return false;
}
