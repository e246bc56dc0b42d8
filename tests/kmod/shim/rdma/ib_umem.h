// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program's memory as pages. Where those lie a test says.
#ifndef KSHIM_IB_UMEM_H
#define KSHIM_IB_UMEM_H

#include <rdma/ib_verbs.h>

struct sg_table {
	struct page **pages;
	size_t count;
};

struct ib_umem {
	struct {
		struct sg_table sgt;
	} sgt_append;
};

struct sg_page_iter {
	const struct sg_table *table;
	size_t at;
};

#define for_each_sgtable_page(sgt, iter, offset)                 \
	for (*(iter) = (struct sg_page_iter){ (sgt), (offset) }; \
	     (iter)->at < (iter)->table->count; (iter)->at++)
#define sg_page_iter_page(iter) ((iter)->table->pages[(iter)->at])

/* The page of a program's address; a test's. NULL: there is none. */
extern struct page *(*kshim_page_of)(u64 addr);

struct ib_umem *ib_umem_get(struct ib_device *device, unsigned long start, size_t len, int access);
void ib_umem_release(struct ib_umem *umem);
#define ib_umem_num_pages(umem) ((umem)->sgt_append.sgt.count)

#endif
