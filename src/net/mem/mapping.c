// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The check asks the kernel mapping by mapping, not page by page: for 1 GiB that a program has
// never touched, a look at each page would take a tenth of a second, and would allocate pages of
// shared memory.
#include "net/mem/mapping.h"

#include "net/base/io_now.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * struct procmap_query and its constants, from linux/fs.h, which is newer than many systems'
 * headers.
 */
struct query {
	uint64_t size;
	uint64_t flags;
	uint64_t addr;
	uint64_t start, end; /* from here on results: of the mapping that was found */
	uint64_t vma_flags;
	uint64_t page_size;
	uint64_t offset;
	uint64_t inode; /* 0: not a file's */
	uint32_t dev[2];
	uint32_t name_size, build_id_size;
	uint64_t name_addr, build_id_addr;
};

enum {
	QUERY_READABLE = 1,
	QUERY_WRITABLE = 2,
};

#define QUERY _IOWR('f', 17, struct query)

static uintptr_t page_of(uintptr_t at)
{
	return at & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
}

static bool populate(const uint8_t *at, size_t len, bool write)
{
	uintptr_t start = page_of((uintptr_t)at);

	return madvise((void *)start, (uintptr_t)at + len - start,
		       write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0;
}

bool aw_mapping_can_tell(void)
{
	static uint8_t octet;

	return populate(&octet, 1, true);
}

bool aw_mapping_reach(const uint8_t *at, size_t len, bool write)
{
	return populate(at, len, write) || !aw_mapping_can_tell();
}

/* Checks one mapping after the other. ENOTTY: the kernel does not know the ioctl. */
static int check_mappings(int maps, uintptr_t at, uintptr_t last, bool write)
{
	for (;;) {
		struct query q = {
			.size = sizeof(q),
			.flags = write ? QUERY_WRITABLE : QUERY_READABLE,
			.addr = at,
		};

		if (ioctl(maps, QUERY, &q) != 0)
			return errno == ENOENT ? EFAULT : ENOTTY;
		/* Of a file's mapping only the last page: no other one lies further behind the file's end. */
		uintptr_t end = q.end - 1 < last ? q.end - 1 : last;

		if (q.inode != 0 && !aw_mapping_reach((const uint8_t *)end, 1, write))
			return EFAULT;
		if (q.end - 1 >= last)
			return 0;
		at = q.end;
	}
}

int aw_mapping_check(const uint8_t *at, size_t len, bool write)
{
	uintptr_t first, last;
	int maps, err = ENOTTY;

	if (len == 0)
		return 0;
	/* Opened for each check: after a fork, a kept fd would show the parent's memory. */
	maps = aw_open_now("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (maps >= 0) {
		err = check_mappings(maps, (uintptr_t)at, (uintptr_t)at + len - 1, write);
		aw_close_now(maps);
	}
	if (err != ENOTTY)
		return err;

	/*
	 * Touching every page of a large region would in effect pin its memory. msync writes
	 * nothing back here; it only walks the mappings and fails with ENOMEM on a hole.
	 */
	first = page_of((uintptr_t)at);
	last = page_of((uintptr_t)at + len - 1);
	if (msync((void *)first, last - first + 1, MS_ASYNC) != 0 ||
	    !aw_mapping_reach(at, 1, write) || !aw_mapping_reach(at + len - 1, 1, write))
		return EFAULT;
	return 0;
}
