// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Regions of a program's memory, which is pinned, and the one region of all of the kernel's.
#include "kmod/base/ring.h"
#include "kmod/mr/impl.h"

#include <rdma/ib_umem.h>

/*
 * The stag_key that a program asks for is not used: the 8 bits of the key are random, so that a
 * peer does not learn the next STag.
 */
static int mr_answer(const struct awk_mr *mr, struct ib_udata *udata)
{
	struct siw_uresp_reg_mr resp = { .stag = mr->core.stag };

	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

static void mr_list_pages(struct awk_mr *mr)
{
	struct sg_page_iter iter;

	for_each_sgtable_page(&mr->umem->sgt_append.sgt, &iter, 0)
	{
		if (mr->pages.count == mr->pages_max)
			return;
		mr->pages.at[mr->pages.count++] = page_address(sg_page_iter_page(&iter));
	}
}

/* Pins the memory and sets its rights, but gives it no STag. */
static struct awk_mr *mr_pin(struct ib_pd *pd, u64 start, u64 len, int access)
{
	struct ib_umem *umem = ib_umem_get(pd->device, start, len, access);
	struct awk_mr *mr;
	size_t pages;

	if (IS_ERR(umem))
		return ERR_CAST(umem);
	pages = ib_umem_num_pages(umem);
	mr = pages <= U32_MAX ? awk_mr_create(AWK_MR_USER, pages) : ERR_PTR(-EINVAL);
	if (IS_ERR(mr)) {
		ib_umem_release(umem);
		return mr;
	}
	mr->umem = umem;
	mr->pages.shift = PAGE_SHIFT;
	mr_list_pages(mr);
	mr->core.len = len;
	mr->core.host = (u8 *)(uintptr_t)offset_in_page(start);
	mr->core.access = awk_mr_access(access);
	mr->valid = 1;
	return mr;
}

struct ib_mr *awk_mr_reg_user(struct ib_pd *pd, u64 start, u64 len, u64 iova, int access,
			      struct ib_udata *udata)
{
	struct awk_mr *mr;
	int err;

	if (len == 0 || !udata || udata->outlen < sizeof(struct siw_uresp_reg_mr))
		return ERR_PTR(-EINVAL);
	mr = mr_pin(pd, start, len, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->core.iova = iova;
	err = awk_mr_enlist(mr, pd);
	if (err) {
		awk_mr_free(mr);
		return ERR_PTR(err);
	}
	err = mr_answer(mr, udata);
	if (err) {
		awk_mr_dereg(&mr->base, NULL);
		return ERR_PTR(err);
	}
	return &mr->base;
}

struct ib_mr *awk_mr_get_dma(struct ib_pd *pd, int access)
{
	struct awk_mr *mr = awk_mr_create(AWK_MR_DMA, 0);
	int err;

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->core.len = U64_MAX;
	mr->core.access = awk_mr_access(access);
	mr->valid = 1;
	err = awk_mr_enlist(mr, pd);
	if (err) {
		awk_mr_free(mr);
		return ERR_PTR(err);
	}
	return &mr->base;
}
