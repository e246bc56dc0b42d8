// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Texts that are made when a program opens their file: the state of the port, and its counters, which are the sum of what the user's
// processes have in their statistics tables and of what those had that are gone.
#define _GNU_SOURCE
#include "cli/paths_counters.h"
#include "cli/paths_preload.h"
#include "net/stat/stat_read.h"

#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES_MAX 16 /* while QPs are destroyed; then a sum may lack one, or have it twice */

/* As the port of a process that opens the device now (verbs/gid.h). */
static bool has_link(void)
{
	struct ifaddrs *all;
	bool found = false;

	if (getifaddrs(&all) != 0)
		return true;
	for (const struct ifaddrs *each = all; each && !found; each = each->ifa_next)
		found = each->ifa_flags & IFF_UP && each->ifa_flags & IFF_RUNNING;
	freeifaddrs(all);
	return found;
}

static struct aw_totals *totals_map(const char *root, uint32_t *mark)
{
	char path[PATH_MAX];
	struct aw_totals *totals = MAP_FAILED;
	struct stat file;
	int fd;

	if (snprintf(path, sizeof(path), "%s/" AW_TOTALS_NAME, root) >= PATH_MAX)
		return NULL;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_size >= (off_t)AW_TOTALS_LEN)
		totals = mmap(NULL, AW_TOTALS_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (totals == MAP_FAILED)
		return NULL;
	*mark = (uint32_t)file.st_ino;
	return totals;
}

static void count_add(struct aw_count *sum, const struct aw_count *count)
{
	sum->fpdus += count->fpdus;
	sum->messages += count->messages;
	sum->bytes += count->bytes;
}

static void process_add(pid_t pid, uint32_t mark, struct aw_qp_count *sum)
{
	struct aw_stat_copy copy;

	if (aw_stat_read(pid, &copy) != AW_STAT_READ)
		return;
	for (uint32_t i = 0; copy.head.totals == mark && i < copy.count; i++) {
		if (copy.rows[i].any.kind != AW_STAT_QP)
			continue;
		count_add(&sum->out, &copy.rows[i].qp.count.out);
		count_add(&sum->in, &copy.rows[i].qp.count.in);
	}
	free(copy.rows);
}

/* The processes of the user that have added to the same totals, or will. */
static void processes_add(uint32_t mark, struct aw_qp_count *sum)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	struct stat file;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);

		if (pid > 0 && fstatat(dirfd(proc), entry->d_name, &file, 0) == 0 &&
		    file.st_uid == geteuid())
			process_add(pid, mark, sum);
	}
	if (proc)
		closedir(proc);
}

/* The order is that of net/stat/totals.c: what leaves a table between the two looks is seen. */
static struct aw_qp_count sum_take(struct aw_totals *totals, uint32_t mark)
{
	struct aw_qp_count sum;
	uint64_t begun, ended;

	for (int i = 0; i < TRIES_MAX; i++) {
		ended = __atomic_load_n(&totals->ended, __ATOMIC_SEQ_CST);
		begun = __atomic_load_n(&totals->begun, __ATOMIC_SEQ_CST);
		sum = totals->count;
		processes_add(mark, &sum);
		if (begun == ended && __atomic_load_n(&totals->begun, __ATOMIC_SEQ_CST) == begun)
			break;
	}
	return sum;
}

static uint64_t value_of(enum paths_counted counted, const struct aw_totals *totals,
			 const struct aw_qp_count *sum)
{
	switch (counted) {
	case PATHS_NEVER:
		break;
	case PATHS_WORDS_OUT:
		return sum->out.bytes / 4;
	case PATHS_WORDS_IN:
		return sum->in.bytes / 4;
	case PATHS_FPDUS_OUT:
		return sum->out.fpdus;
	case PATHS_FPDUS_IN:
		return sum->in.fpdus;
	case PATHS_BYTES_OUT:
		return sum->out.bytes;
	case PATHS_BYTES_IN:
		return sum->in.bytes;
	case PATHS_MESSAGES_OUT:
		return sum->out.messages;
	case PATHS_MESSAGES_IN:
		return sum->in.messages;
	case PATHS_CRC_ERRORS:
		return totals->crc_errors;
	case PATHS_TERMINATES_OUT:
		return totals->terminates_sent;
	case PATHS_TERMINATES_IN:
		return totals->terminates_received;
	}
	return 0;
}

/* The value, or the highest that was ever shown. */
static uint64_t never_back(uint64_t *shown, uint64_t value)
{
	uint64_t before = __atomic_load_n(shown, __ATOMIC_RELAXED);

	while (before < value && !__atomic_compare_exchange_n(shown, &before, value, false,
							      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return before < value ? value : before;
}

static bool counter_print(const char *root, size_t index, char text[PATHS_TEXT_MAX])
{
	uint32_t mark = 0;
	struct aw_totals *totals = totals_map(root, &mark);
	struct aw_qp_count sum;
	uint64_t value;

	if (!totals)
		return false;
	sum = sum_take(totals, mark);
	value = never_back(&totals->shown[index],
			   value_of(aw_paths_counters[index].counted, totals, &sum));
	snprintf(text, PATHS_TEXT_MAX, "%" PRIu64 "\n", value);
	munmap(totals, AW_TOTALS_LEN);
	return true;
}

bool aw_paths_live(const char *root, const char *name, char text[PATHS_TEXT_MAX])
{
	if (!strcmp(name, "state")) {
		strcpy(text, has_link() ? "4: ACTIVE\n" : "1: DOWN\n");
		return true;
	}
	if (!strcmp(name, "phys_state")) {
		strcpy(text, has_link() ? "5: LinkUp\n" : "3: Disabled\n");
		return true;
	}
	for (size_t i = 0; i < PATHS_COUNTERS; i++)
		if (!strcmp(name, aw_paths_counters[i].path))
			return aw_paths_counters[i].counted != PATHS_NEVER &&
			       counter_print(root, i, text);
	return false;
}
