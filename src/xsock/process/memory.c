// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A piece that is not in use begins with a pointer to the next one.
#include "xsock/process/memory.h"

#include <string.h>
#include <sys/mman.h>

#define CHUNK_OCTETS 65536

void *aw_memory_map(size_t octets)
{
	void *at = mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

void aw_memory_unmap(void *at, size_t octets)
{
	if (at)
		munmap(at, octets);
}

void aw_pool_give(struct aw_pool *pool, void *piece)
{
	*(void **)piece = pool->unused;
	pool->unused = piece;
}

static void refill(struct aw_pool *pool)
{
	char *chunk = aw_memory_map(CHUNK_OCTETS);

	for (size_t at = 0; chunk && at + pool->octets <= CHUNK_OCTETS; at += pool->octets)
		aw_pool_give(pool, chunk + at);
}

void *aw_pool_take(struct aw_pool *pool)
{
	void *piece;

	if (!pool->unused)
		refill(pool);
	piece = pool->unused;
	if (!piece)
		return NULL;
	pool->unused = *(void **)piece;
	memset(piece, 0, pool->octets);
	return piece;
}
