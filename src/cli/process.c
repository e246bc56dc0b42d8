// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "cli/process.h"

#include "base/slice.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PID_MOST (1ul << 22) // the kernel's PID_MAX_LIMIT

bool aw_process_parse(const char *text, pid_t *pid)
{
	unsigned long number;

	if (!aw_slice_number(aw_slice_of(text), PID_MOST, &number) || !number)
		return false;
	*pid = (pid_t)number;
	return true;
}

bool aw_process_number(const char *who, const char *text, pid_t *pid)
{
	if (*pid) {
		fprintf(stderr,
			"%s: takes one PID, and '%s' is another: 'pidof -s NAME' finds one\n", who,
			text);
		return false;
	}
	if (aw_process_parse(text, pid))
		return true;
	fprintf(stderr, "%s: '%s' is no process ID: 'pidof -s NAME' finds one\n", who, text);
	return false;
}

bool aw_process_each(const char *who, bool (*look)(pid_t pid, uid_t owner, void *arg), void *arg)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	bool right = true;
	struct stat file;
	pid_t pid;

	if (!proc) {
		fprintf(stderr, "%s: cannot look at /proc: %s\n", who, strerror(errno));
		return false;
	}
	while ((entry = readdir(proc))) {
		if (aw_process_parse(entry->d_name, &pid) &&
		    fstatat(dirfd(proc), entry->d_name, &file, 0) == 0 &&
		    (geteuid() == 0 || geteuid() == file.st_uid))
			right &= look(pid, file.st_uid, arg);
	}
	closedir(proc);
	return right;
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
