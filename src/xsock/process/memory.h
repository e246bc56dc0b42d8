// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory that is not malloc's: a signal handler may call close(2), accept(2), poll(2) or execve(2)
// after it has interrupted the program in malloc.
#ifndef XSOCK_PROCESS_MEMORY_H
#define XSOCK_PROCESS_MEMORY_H

#include <stddef.h>
#include <sys/uio.h>

/* Returns zeroed memory in whole pages, or NULL. For what is large, or is soon unmapped. */
void *aw_memory_map(size_t bytes);
void aw_memory_unmap(void *at, size_t bytes);

/*
 * Fills pieces, at most `most` of them, for len bytes that are to be dropped: memory that nothing reads, over and over. Returns their
 * number; *covered: their bytes.
 */
int aw_memory_waste(size_t len, struct iovec *pieces, int most, size_t *covered);

/*
 * A pool of pieces of one size. Freed pieces are used again; their memory never goes back to the
 * kernel. The caller holds the table's lock.
 */
struct aw_pool {
	size_t bytes; /* size of a piece, a multiple of a pointer's alignment */
	void *unused;
};

/* Returns a zeroed piece, or NULL. */
void *aw_pool_alloc(struct aw_pool *pool);
void aw_pool_free(struct aw_pool *pool, void *piece);

#endif
