// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/faults/count.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* The numbers of this process. */
static _Atomic uint64_t own[AW_FAULT_NAMES_MAX];

struct aw_fault_counts *aw_fault_counts_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *map;

	if (fd < 0)
		return NULL;
	map = mmap(NULL, sizeof(struct aw_fault_counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return map == MAP_FAILED ? NULL : map;
}

/* The counters order nothing but themselves. */
void aw_fault_counts_add(struct aw_fault_counts *counts, unsigned name)
{
	uint64_t mine = atomic_fetch_add_explicit(&own[name], 1, memory_order_relaxed) + 1;
	uint64_t most = atomic_load_explicit(&counts->calls[name], memory_order_relaxed);

	while (most < mine &&
	       !atomic_compare_exchange_weak_explicit(&counts->calls[name], &most, mine,
						      memory_order_relaxed, memory_order_relaxed))
		;
}
