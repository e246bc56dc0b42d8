// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#define _GNU_SOURCE // F_GET_SEALS
#include "verbs/dmabuf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* F_GET_SEALS succeeds only for files that are memory. */
static bool is_buffer(int fd)
{
	struct statfs fs;

	return fcntl(fd, F_GET_SEALS) >= 0 ||
	       (fstatfs(fd, &fs) == 0 && (uint32_t)fs.f_type == DMA_BUF_MAGIC);
}

/* The whole pages, which may be huge ones, around those bytes. */
static void span_of(const struct stat *file, uint64_t offset, size_t length, uint64_t *start,
		    uint64_t *end)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), size = (uint64_t)file->st_size;

	if ((uint64_t)file->st_blksize > page)
		page = (uint64_t)file->st_blksize;
	*start = offset - offset % page;
	*end = offset + length;
	*end = *end > size - size % page ? size : (*end + page - 1) / page * page;
}

/* mmap of a dma-buf whose exporter maps it only for devices gives EINVAL, whatever is asked. */
static int mmap_error(int err)
{
	return err == ENODEV || err == EINVAL || err == ENOSYS ? EOPNOTSUPP : err;
}

int vb_dmabuf_map(int fd, uint64_t offset, size_t length, bool writes, struct vb_mapping *mapping,
		  uint8_t **host)
{
	int prot = writes ? PROT_READ | PROT_WRITE : PROT_READ;
	uint64_t start, end;
	struct stat file;
	void *memory;

	if (fstat(fd, &file) != 0)
		return errno;
	if (!is_buffer(fd))
		return EOPNOTSUPP;
	if (!length || offset > (uint64_t)file.st_size || length > (uint64_t)file.st_size - offset)
		return EINVAL;
	span_of(&file, offset, length, &start, &end);
	memory = mmap(NULL, end - start, prot, MAP_SHARED, fd, (off_t)start);
	if (memory == MAP_FAILED)
		return mmap_error(errno);
	*mapping = (struct vb_mapping){ .start = memory, .length = end - start };
	*host = mapping->start + (offset - start);
	return 0;
}

void vb_dmabuf_unmap(const struct vb_mapping *mapping)
{
	if (mapping->length)
		munmap(mapping->start, mapping->length);
}
