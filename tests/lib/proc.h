// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What this process holds now: its fds and its threads. Counted before and after, they show leaks. And whether its
// threads sleep.
#ifndef TESTS_LIB_PROC_H
#define TESTS_LIB_PROC_H

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int proc_entries(const char *path)
{
	DIR *dir = opendir(path);
	int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

static inline int proc_fds(void)
{
	return proc_entries("/proc/self/fd");
}

static inline int proc_threads(void)
{
	return proc_entries("/proc/self/task") - 2;
}

static inline bool proc_sleeps(long thread)
{
	char path[64], state = 'R';
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/stat", thread);
	stat = fopen(path, "re");
	if (stat && fscanf(stat, "%*d (%*[^)]) %c", &state) != 1)
		state = 'R';
	if (stat)
		fclose(stat);
	return state == 'S';
}

/* No thread but the caller runs. */
static inline bool proc_others_sleep(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *entry;
	bool sleep = dir;

	while (sleep && (entry = readdir(dir))) {
		long thread = atol(entry->d_name);

		sleep = thread <= 0 || thread == syscall(SYS_gettid) || proc_sleeps(thread);
	}
	if (dir)
		closedir(dir);
	return sleep;
}

#endif
