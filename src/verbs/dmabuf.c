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

int vb_dmabuf_map(int fd, uint64_t offset, size_t length, bool writes, struct vb_mapping *mapping,
		  uint8_t **host)
{
	int prot = writes ? PROT_READ | PROT_WRITE : PROT_READ;
	uint64_t start, end;
	struct stat file;
	struct statfs fs;
	void *memory;

	if (fstat(fd, &file) != 0)
		return errno;
	/* F_GET_SEALS succeeds only for files that are memory. */
	if (fcntl(fd, F_GET_SEALS) < 0 &&
	    (fstatfs(fd, &fs) != 0 || (uint32_t)fs.f_type != DMA_BUF_MAGIC))
		return EOPNOTSUPP;
	if (!length || offset > (uint64_t)file.st_size || length > (uint64_t)file.st_size - offset)
		return EINVAL;
	/* The whole pages, which may be huge ones, around those bytes. */
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), size = (uint64_t)file.st_size;

	if ((uint64_t)file.st_blksize > page)
		page = (uint64_t)file.st_blksize;
	start = offset - offset % page;
	end = offset + length;
	end = end > size - size % page ? size : (end + page - 1) / page * page;
	memory = mmap(NULL, end - start, prot, MAP_SHARED, fd, (off_t)start);
	/* mmap of a dma-buf whose exporter maps it only for devices gives EINVAL, whatever is asked. */
	if (memory == MAP_FAILED)
		return errno == ENODEV || errno == EINVAL || errno == ENOSYS ? EOPNOTSUPP : errno;
	*mapping = (struct vb_mapping){ .start = memory, .length = end - start };
	*host = mapping->start + (offset - start);
	return 0;
}

void vb_dmabuf_unmap(const struct vb_mapping *mapping)
{
	if (mapping->length)
		munmap(mapping->start, mapping->length);
}
