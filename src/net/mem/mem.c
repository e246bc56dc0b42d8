// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "net/mem/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int aw_mem_get(struct aw_mem *mem, const struct aw_mem_source *source, enum aw_mem_kind kind,
	       size_t size)
{
	void *at = source ? source->alloc(source->arg, size, kind) : AW_MEM_DEFAULT;

	if (at == AW_MEM_DEFAULT) {
		source = NULL;
		at = calloc(1, size);
	} else if (at) {
		/* The program's allocator should return zeros, but not every one does. */
		memset(at, 0, size);
	}
	if (!at)
		return ENOMEM;
	*mem = (struct aw_mem){ at, source, kind };
	return 0;
}

void aw_mem_put(const struct aw_mem *mem)
{
	if (mem->source)
		mem->source->free(mem->source->arg, mem->at, mem->kind);
	else
		free(mem->at);
}
