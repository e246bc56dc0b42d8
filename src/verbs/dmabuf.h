// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memory behind a dma-buf's fd, mapped into this process. A memfd does as well. Synchronizing
// the CPU's caches with a dma-buf (DMA_BUF_IOCTL_SYNC) stays the program's task, as with memory
// that it maps itself.
#ifndef VERBS_DMABUF_H
#define VERBS_DMABUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vb_mapping {
	uint8_t *start;
	size_t length; /* 0: none */
};

/*
 * Maps length bytes at offset; *host is their address. 0, EBADF, EINVAL (not within the buffer, or
 * length 0), EOPNOTSUPP (not a dma-buf, or one that only devices reach), or mmap's error: EACCES
 * and EPERM for a buffer that may not be written, ENOMEM.
 */
int vb_dmabuf_map(int fd, uint64_t offset, size_t length, bool writes, struct vb_mapping *mapping,
		  uint8_t **host);
void vb_dmabuf_unmap(const struct vb_mapping *mapping);

#endif
