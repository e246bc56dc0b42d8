// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Regions whose pages the kernel's ULPs change with every I/O: allocated once, mapped, registered by a
// REG_MR on the send queue, invalidated.
#include "kmod/mr/impl.h"

struct ib_mr *awk_mr_alloc(struct ib_pd *pd, enum ib_mr_type type, u32 pages_max)
{
	struct awk_mr *mr;
	int err;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (pages_max == 0 || pages_max > AWK_FAST_PAGES_MAX)
		return ERR_PTR(-EINVAL);
	mr = awk_mr_create(AWK_MR_FAST, pages_max);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	err = awk_mr_enlist(mr, pd);
	if (err) {
		awk_mr_free(mr);
		return ERR_PTR(err);
	}
	return &mr->base;
}

/* A device without DMA: addr is one of the kernel's own addresses. */
static int mr_add_page(struct ib_mr *base, u64 addr)
{
	struct awk_mr *mr = awk_mr_of(base);

	if (mr->mapped.count == mr->pages_max)
		return -ENOMEM;
	mr->mapped.at[mr->mapped.count++] = (void *)(uintptr_t)addr;
	return 0;
}

/*
 * A ULP maps anew before the invalidation that it posts before the REG_MR: until that has run,
 * nothing changes.
 */
int awk_mr_map_sg(struct ib_mr *base, struct scatterlist *sg, int sg_count, unsigned int *offset)
{
	struct awk_mr *mr = awk_mr_of(base);

	if (mr->kind != AWK_MR_FAST)
		return -EINVAL;
	mr->mapped.count = 0;
	mr->mapped.shift = ilog2(base->page_size);
	return ib_sg_to_pages(base, sg, sg_count, offset, mr_add_page);
}
