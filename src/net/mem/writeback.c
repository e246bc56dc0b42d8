// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/mem/writeback.h"

#include "base/thread.h"
#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "ring/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/vfs.h>
#include <unistd.h>

/* A line of /proc/self/maps. */
struct mapping {
	uintptr_t start, end;
	char rights[5];
	const char *name;
};

struct job {
	struct aw_writeback what;
	STAILQ_ENTRY(job) entry;
};

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static STAILQ_HEAD(, job) jobs AW_GUARDED_BY(lock) = STAILQ_HEAD_INITIALIZER(jobs);
static bool runs AW_GUARDED_BY(lock); /* the thread exists, and looks at the list once more */
static uint32_t generation AW_GUARDED_BY(lock); /* of the two above */

static bool line_parse(char *line, struct mapping *mapping)
{
	int name_at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %n", &mapping->start,
		   &mapping->end, mapping->rights, &name_at) < 3)
		return false;
	mapping->name = line + (name_at ? (size_t)name_at : strlen(line));
	return true;
}

/* The kernel appends " (deleted)" to the name of a file that has none any more. */
static bool outlasts_host(const struct mapping *mapping)
{
	static const char gone[] = " (deleted)";
	size_t len = strlen(mapping->name);
	struct statfs fs;

	if (mapping->rights[3] != 's' || mapping->name[0] != '/')
		return false;
	if (len >= sizeof(gone) - 1 && !strcmp(mapping->name + len - (sizeof(gone) - 1), gone))
		return false;
	return statfs(mapping->name, &fs) == 0 && fs.f_type != TMPFS_MAGIC &&
	       fs.f_type != RAMFS_MAGIC && fs.f_type != HUGETLBFS_MAGIC;
}

/* Mappings come by rising address. */
static bool range_outlasts(FILE *maps, uintptr_t at, uintptr_t end)
{
	char *line = NULL;
	size_t room = 0;

	while (at < end && getline(&line, &room, maps) > 0) {
		struct mapping mapping;

		if (!line_parse(line, &mapping) || mapping.end <= at)
			continue;
		if (mapping.start > at || !outlasts_host(&mapping))
			break;
		at = mapping.end;
	}
	free(line);
	return at >= end;
}

bool aw_writeback_can(const uint8_t *at, size_t len)
{
	int fd = aw_open_now("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");
	bool can = maps && range_outlasts(maps, (uintptr_t)at, (uintptr_t)at + len);

	if (maps)
		fclose(maps);
	else if (fd >= 0)
		aw_close_now(fd);
	return can;
}

static int write_back(const struct aw_writeback *what)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)what->at & ~(page - 1);

	if (what->len == 0)
		return 0;
	/* Since the registration another mapping may have come to lie there, which msync would take as well. */
	if (!aw_writeback_can(what->at, what->len))
		return ENOMEM;
	return msync((void *)start, (uintptr_t)what->at + what->len - start, MS_SYNC) ? errno : 0;
}

/* The next job; NULL: the thread ends. */
static struct job *job_take(void)
{
	struct job *job;

	aw_lock(&lock);
	job = STAILQ_FIRST(&jobs);
	if (job)
		STAILQ_REMOVE_HEAD(&jobs, entry);
	else
		runs = false;
	aw_unlock(&lock);
	return job;
}

static void *jobs_run(void *arg)
{
	struct job *job;

	(void)arg;
	while ((job = job_take())) {
		int err = write_back(&job->what);

		job->what.told(job->what.handle, job->what.number, err);
		free(job);
	}
	return NULL;
}

/* The thread and what it has still to do are the parent's. */
static void forget_parent(void) AW_REQUIRES(lock)
{
	if (generation == aw_fork_generation())
		return;
	generation = aw_fork_generation();
	runs = false;
	while (!STAILQ_EMPTY(&jobs)) {
		struct job *job = STAILQ_FIRST(&jobs);

		STAILQ_REMOVE_HEAD(&jobs, entry);
		free(job);
	}
}

int aw_writeback_start(const struct aw_writeback *what)
{
	struct job *job = malloc(sizeof(*job));
	int err = 0;

	if (!job)
		return ENOMEM;
	job->what = *what;
	aw_lock(&lock);
	forget_parent();
	STAILQ_INSERT_TAIL(&jobs, job, entry);
	if (!runs) {
		err = aw_thread_start(jobs_run, NULL);
		runs = !err;
	}
	if (err)
		STAILQ_REMOVE(&jobs, job, job, entry);
	aw_unlock(&lock);
	if (err)
		free(job);
	return err;
}

static const struct aw_fork_handlers fork_handlers = { .lock = &lock };

static __attribute__((constructor)) void writeback_prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_WRITEBACK, &fork_handlers);
}
