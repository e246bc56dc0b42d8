// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/qp/stash_memory.h"

#include <stdatomic.h>
#include <stdlib.h>

static atomic_size_t taken; /* bytes */

static void give_back(size_t len)
{
	atomic_fetch_sub_explicit(&taken, len, memory_order_relaxed);
}

void *aw_stash_memory_get(size_t len)
{
	void *memory = NULL;

	if (len > AW_STASHES_MAX)
		return NULL;
	if (atomic_fetch_add_explicit(&taken, len, memory_order_relaxed) <= AW_STASHES_MAX - len)
		memory = malloc(len);
	if (!memory)
		give_back(len);
	return memory;
}

void aw_stash_memory_put(void *memory, size_t len)
{
	free(memory);
	give_back(len);
}
