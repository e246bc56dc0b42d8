// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A queue's memory: from the heap, or from the program's allocator (a parent domain's).
#ifndef NET_MEM_H
#define NET_MEM_H

#include <stddef.h>

#define AW_MEM_ALIGN 64
#define AW_MEM_DEFAULT ((void *)-1) /* an allocator returns it to have the heap used */

enum aw_mem_kind {
	AW_MEM_QP,
	AW_MEM_SRQ,
	AW_MEM_CQ,
};

/* Called with no lock held. alloc: NULL is a failure. */
struct aw_mem_source {
	void *(*alloc)(void *arg, size_t size, enum aw_mem_kind kind);
	void (*free)(void *arg, void *at, enum aw_mem_kind kind);
	void *arg;
};

struct aw_mem {
	void *at;
	const struct aw_mem_source *source; /* NULL: the heap */
	enum aw_mem_kind kind;
};

/* Gets size zeroed bytes. source may be NULL, and must outlive mem. 0 or ENOMEM. */
int aw_mem_get(struct aw_mem *mem, const struct aw_mem_source *source, enum aw_mem_kind kind,
	       size_t size);
void aw_mem_put(const struct aw_mem *mem);

#endif
