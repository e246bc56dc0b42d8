// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "worker/cpu.h"

#include "worker/fail.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LINE_MAX_OCTETS 256

static double seconds_of(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

struct cpu cpu_now(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) != 0)
		fail_errno("getrusage");
	return (struct cpu){ seconds_of(&usage.ru_utime), seconds_of(&usage.ru_stime) };
}

struct cpu cpu_since(const struct cpu *before)
{
	struct cpu now = cpu_now();

	return (struct cpu){ now.user - before->user, now.system - before->system };
}

struct cpu cpu_sum(const struct cpu *a, const struct cpu *b)
{
	return (struct cpu){ a->user + b->user, a->system + b->system };
}

double cpu_machine(void)
{
	/* user nice system idle iowait irq softirq steal (proc(5)) */
	unsigned long long ticks[8];
	FILE *file = fopen("/proc/stat", "re");
	bool read = file && fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &ticks[0],
				   &ticks[1], &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6],
				   &ticks[7]) == 8;

	if (file)
		fclose(file);
	if (!read)
		fail("no CPU times in /proc/stat: mount /proc");
	return (double)(ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7]) /
	       (double)sysconf(_SC_CLK_TCK);
}

/* The number of kB behind a name, in bytes; 0 when the file has no such line. */
static uint64_t kilobytes(const char *path, const char *name)
{
	char line[LINE_MAX_OCTETS];
	uint64_t found = 0;
	FILE *file = fopen(path, "re");

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, name, strlen(name)) == 0 &&
		    sscanf(line + strlen(name), "%" SCNu64, &found) == 1)
			break;
	}
	fclose(file);
	return found * 1024;
}

struct memory memory_now(void)
{
	struct memory memory = { .anon = kilobytes("/proc/self/status", "RssAnon:"),
				 .pss = kilobytes("/proc/self/smaps_rollup", "Pss:") };

	if (memory.anon == 0)
		fail("no RssAnon in /proc/self/status: mount /proc, Linux 4.5 or later");
	return memory;
}
