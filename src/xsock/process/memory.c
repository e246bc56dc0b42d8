// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Pages by mmap(2), and pools. A free piece of a pool begins with a pointer to the next free one.
#include "xsock/process/memory.h"

#include <string.h>
#include <sys/mman.h>

#define CHUNK_BYTES 65536
#define WASTE_BYTES 65536

void *aw_memory_map(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

void aw_memory_unmap(void *at, size_t bytes)
{
	if (at)
		munmap(at, bytes);
}

int aw_memory_waste(size_t len, struct iovec *pieces, int most, size_t *covered)
{
	static char waste[WASTE_BYTES];
	int count = 0;

	for (*covered = 0; *covered < len && count < most; *covered += pieces[count++].iov_len) {
		size_t left = len - *covered;

		pieces[count] = (struct iovec){ waste, left < WASTE_BYTES ? left : WASTE_BYTES };
	}
	return count;
}

void aw_pool_free(struct aw_pool *pool, void *piece)
{
	*(void **)piece = pool->unused;
	pool->unused = piece;
}

void *aw_pool_alloc(struct aw_pool *pool)
{
	char *chunk = pool->unused ? NULL : aw_memory_map(CHUNK_BYTES);
	void *piece;

	for (size_t at = 0; chunk && at + pool->bytes <= CHUNK_BYTES; at += pool->bytes)
		aw_pool_free(pool, chunk + at);
	piece = pool->unused;
	if (!piece)
		return NULL;
	pool->unused = *(void **)piece;
	memset(piece, 0, pool->bytes);
	return piece;
}
