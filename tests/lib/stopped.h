// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Stops this process and has it continued, as a shell's job control or a debugger does.
#ifndef LIB_STOPPED_H
#define LIB_STOPPED_H

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static inline bool stopped_is(const char *stat_path)
{
	char stat[512] = "";
	int fd = open(stat_path, O_RDONLY | O_CLOEXEC);
	ssize_t len = read(fd, stat, sizeof(stat) - 1);
	const char *name_end = len > 0 ? strrchr(stat, ')') : NULL;

	close(fd);
	return name_end && strncmp(name_end, ") T", 3) == 0;
}

/* A child stops this process, waits until it has stopped, and continues it. False: it could not. */
static inline bool stopped_and_continued(void)
{
	pid_t target = getpid(), child = fork();
	int status = -1;
	char path[64];

	if (child != 0)
		return child > 0 && waitpid(child, &status, 0) == child && status == 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)target);
	if (kill(target, SIGSTOP) != 0)
		_exit(1);
	while (!stopped_is(path))
		sched_yield();
	_exit(kill(target, SIGCONT) != 0);
}

#endif
