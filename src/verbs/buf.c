// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Buffers whose memory the library chooses: here that of the heap, in whole pages, which any MR can have. No buffer is a
// dma-buf: the device has no memory of its own.
#include "net/base/io_now.h"
#include "verbs/newer.h"
#include "verbs/pd.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

struct ibv_buf {
	struct ibv_pd *pd; /* has the buffer as a user */
	uint8_t *memory;
	size_t size;
};

void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf);
void ibv_free_buf(struct ibv_buf *buf);
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
			      int access);
int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf);

void *ibv_alloc_buf(struct ibv_pd *pd, size_t size, struct ibv_buf **buf)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct ibv_buf *made;
	void *memory;

	if (!size) {
		errno = EINVAL;
		return NULL;
	}
	made = calloc(1, sizeof(*made));
	if (!made || posix_memalign(&memory, page, size) != 0) {
		free(made);
		errno = ENOMEM;
		return NULL;
	}
	*made = (struct ibv_buf){ .pd = pd, .memory = memory, .size = size };
	vb_pd_get(pd);
	*buf = made;
	return memory;
}

void ibv_free_buf(struct ibv_buf *buf)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();

	if (!buf)
		return;
	vb_pd_put(buf->pd);
	free(buf->memory);
	free(buf);
}

/* EINVAL for what is not within the buffer, and for another PD than its own. */
struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buf, void *addr, size_t length,
			      int access)
{
	uintptr_t offset = (uintptr_t)addr - (uintptr_t)buf->memory;

	if (pd != buf->pd || offset > buf->size || length > buf->size - offset) {
		errno = EINVAL;
		return NULL;
	}
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

int ibv_export_buf_dmabuf_fd(struct ibv_buf *buf)
{
	(void)buf;
	errno = ENODATA;
	return -1;
}
