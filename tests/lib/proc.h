// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What this process holds now: its fds and its threads. Counted before and after, they show leaks.
#ifndef TESTS_LIB_PROC_H
#define TESTS_LIB_PROC_H

#include <dirent.h>

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

#endif
