// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The file is the user's own, in a directory that nobody else can write to; another's file of that name is left alone.
#include "net/stat/totals.h"

#include "net/base/io_now.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static struct aw_totals *totals; /* NULL: nothing is added */

static struct aw_totals *map_file(const char *path, uint32_t *mark)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	struct aw_totals *mapped = MAP_FAILED;
	struct stat file;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == geteuid() &&
	    file.st_size >= (off_t)AW_TOTALS_LEN)
		mapped = mmap(NULL, AW_TOTALS_LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	aw_close_now(fd);
	if (mapped == MAP_FAILED)
		return NULL;
	*mark = (uint32_t)file.st_ino;
	return mapped;
}

uint32_t aw_totals_open(void)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	const char *root = secure_getenv("ANYWARP_PATHS");
	static uint32_t mark;
	static char path[PATH_MAX]; /* the program's stack may be small */
	static bool looked;

	if (looked || !root || !*root ||
	    snprintf(path, sizeof(path), "%s/" AW_TOTALS_NAME, root) >= PATH_MAX)
		return mark;
	looked = true;
	totals = map_file(path, &mark);
	if (totals && totals->magic != AW_TOTALS_MAGIC) {
		munmap(totals, AW_TOTALS_LEN);
		totals = NULL;
		mark = 0;
	}
	return mark;
}

static void add(uint64_t *word, uint64_t change)
{
	__atomic_fetch_add(word, change, __ATOMIC_RELAXED);
}

static void add_count(struct aw_count *sum, const struct aw_count *count)
{
	add(&sum->fpdus, count->fpdus);
	add(&sum->messages, count->messages);
	add(&sum->bytes, count->bytes);
}

/* The order is that of a lock for the reader in cli/paths_live.c. */
void aw_totals_begin(void)
{
	if (totals)
		__atomic_fetch_add(&totals->begun, 1, __ATOMIC_SEQ_CST);
}

void aw_totals_add(const struct aw_qp_count *count)
{
	if (!totals)
		return;
	add_count(&totals->count.out, &count->out);
	add_count(&totals->count.in, &count->in);
}

void aw_totals_end(void)
{
	if (totals)
		__atomic_fetch_add(&totals->ended, 1, __ATOMIC_SEQ_CST);
}

void aw_totals_add_end(bool crc, bool sent, bool received)
{
	if (!totals)
		return;
	add(&totals->crc_errors, crc);
	add(&totals->terminates_sent, sent);
	add(&totals->terminates_received, received);
}
