// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memory behind a dma-buf's fd, mapped into this process. A memfd does as well. What the CPU's caches have to
// be told of a dma-buf (DMA_BUF_IOCTL_SYNC) stays the program's to tell, as it is with memory that it maps itself.
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
 * Maps length octets at offset, at *host. 0, EBADF, EINVAL (not within the buffer, or of no length), EOPNOTSUPP
 * (not a dma-buf, or one that only a device reaches), or what mmap says: EACCES and EPERM of one that may not be
 * written, ENOMEM.
 */
int vb_dmabuf_map(int fd, uint64_t offset, size_t length, bool writes, struct vb_mapping *mapping,
		  uint8_t **host);
void vb_dmabuf_unmap(const struct vb_mapping *mapping);

#endif
