// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the kernel's verbs do for a driver: mappings of rings, and memory as pages.
#include "kmod/base/ring.h"

#include <linux/netdevice.h>
#include <rdma/ib_umem.h>
#include <rdma/uverbs_ioctl.h>

struct page *(*kshim_page_of)(u64 addr);

int ib_copy_to_udata(struct ib_udata *udata, const void *src, size_t len)
{
	KSHIM_CHECK(len <= udata->outlen && len <= sizeof(udata->out));
	memcpy(udata->out, src, len);
	return 0;
}

int rdma_user_mmap_entry_insert_range(struct ib_ucontext *uctx, struct rdma_user_mmap_entry *entry,
				      size_t len, u32 min_page, u32 max_page)
{
	(void)uctx;
	KSHIM_CHECK(len > 0 && min_page <= max_page);
	entry->refs = 1;
	entry->offset = (uintptr_t)entry & ~(PAGE_SIZE - 1);
	return 0;
}

void rdma_user_mmap_entry_put(struct rdma_user_mmap_entry *entry)
{
	KSHIM_CHECK(entry->refs > 0);
	if (--entry->refs == 0)
		awk_ring_mmap_free(entry);
}

void rdma_user_mmap_entry_remove(struct rdma_user_mmap_entry *entry)
{
	rdma_user_mmap_entry_put(entry);
}

u64 rdma_user_mmap_get_offset(const struct rdma_user_mmap_entry *entry)
{
	return entry->offset;
}

/* No test maps: the rings of a test's program are read and written where they lie. */
struct rdma_user_mmap_entry *rdma_user_mmap_entry_get(struct ib_ucontext *uctx,
						      struct vm_area_struct *vma)
{
	(void)uctx;
	(void)vma;
	return NULL;
}

int vm_insert_page(struct vm_area_struct *vma, unsigned long at, struct page *page)
{
	(void)vma;
	(void)at;
	(void)page;
	return -EFAULT;
}

static int umem_pin(struct ib_umem *umem, u64 first)
{
	struct sg_table *table = &umem->sgt_append.sgt;

	for (size_t i = 0; i < table->count; i++) {
		table->pages[i] = kshim_page_of(first + i * PAGE_SIZE);
		if (!table->pages[i])
			return -EFAULT;
	}
	return 0;
}

struct ib_umem *ib_umem_get(struct ib_device *device, unsigned long start, size_t len, int access)
{
	u64 first = start & ~(PAGE_SIZE - 1), end = start + len;
	struct ib_umem *umem;
	int err;

	(void)device;
	(void)access;
	if (end < start || end + PAGE_SIZE < end)
		return ERR_PTR(-EINVAL);
	umem = kzalloc(sizeof(*umem), GFP_KERNEL);
	if (!umem)
		return ERR_PTR(-ENOMEM);
	umem->sgt_append.sgt.count = (end - first + PAGE_SIZE - 1) >> PAGE_SHIFT;
	umem->sgt_append.sgt.pages =
		kvcalloc(umem->sgt_append.sgt.count, sizeof(struct page *), GFP_KERNEL);
	err = umem->sgt_append.sgt.pages ? umem_pin(umem, first) : -ENOMEM;
	if (err) {
		ib_umem_release(umem);
		return ERR_PTR(err);
	}
	return umem;
}

void ib_umem_release(struct ib_umem *umem)
{
	if (!umem)
		return;
	kvfree(umem->sgt_append.sgt.pages);
	kfree(umem);
}

/* The pages of one piece; where an error stops them, *len is how many octets those before it have. */
static int sg_pages(struct ib_mr *mr, u64 addr, u32 *len, int (*set_page)(struct ib_mr *, u64))
{
	u64 page = addr & ~((u64)mr->page_size - 1);
	u64 end = addr + *len;

	do {
		int err = set_page(mr, page);

		if (err) {
			*len = page > addr ? page - addr : 0;
			return err;
		}
		page += mr->page_size;
	} while (page < end);
	return 0;
}

int ib_sg_to_pages(struct ib_mr *mr, struct scatterlist *sg, int sg_count, unsigned int *offset,
		   int (*set_page)(struct ib_mr *mr, u64 addr))
{
	u32 skip = offset ? *offset : 0, len;
	u64 inside = mr->page_size - 1;
	int i, err;

	if (sg_count <= 0 || skip > sg[0].len)
		return -EINVAL;
	mr->iova = sg[0].addr + skip;
	mr->length = 0;
	for (i = 0; i < sg_count; i++, skip = 0) {
		bool fits = i == 0 || (((sg[i].addr | (mr->iova + mr->length)) & inside) == 0);

		if (!fits)
			break;
		len = sg[i].len - skip;
		err = sg_pages(mr, sg[i].addr + skip, &len, set_page);
		mr->length += len;
		if (err) {
			if (offset)
				*offset = skip + len;
			return i || skip + len ? i : err;
		}
	}
	if (offset)
		*offset = 0;
	return i;
}
