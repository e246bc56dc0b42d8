// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory that is not malloc's: close(2), accept(2), poll(2), execve(2) and others may be called by the handler of a
// signal, which may have come while the program was in malloc.
#ifndef XSOCK_PROCESS_MEMORY_H
#define XSOCK_PROCESS_MEMORY_H

#include <stddef.h>

/* Zeroed; NULL: none. Whole pages: not for what is small and stays. */
void *aw_memory_map(size_t octets);
void aw_memory_unmap(void *at, size_t octets);

/* Pieces of one size, which are used again and never go back to the kernel. With the table's lock. */
struct aw_pool {
	size_t octets; /* of a piece, which begins where a pointer may */
	void *unused;
};

/* Zeroed; NULL: none. */
void *aw_pool_take(struct aw_pool *pool);
void aw_pool_give(struct aw_pool *pool, void *piece);

#endif
