// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A program's mappings: an entry lives until it was removed and nobody maps it.
#ifndef KSHIM_UVERBS_IOCTL_H
#define KSHIM_UVERBS_IOCTL_H

#include <rdma/ib_verbs.h>

struct rdma_user_mmap_entry {
	int refs;
	u64 offset;
};

struct uverbs_attr_bundle {
	struct ib_udata driver_udata;
};

#define rdma_udata_to_drv_context(udata, type, member) \
	((udata) ? container_of((udata)->uctx, type, member) : NULL)

int rdma_user_mmap_entry_insert_range(struct ib_ucontext *uctx, struct rdma_user_mmap_entry *entry,
				      size_t len, u32 min_page, u32 max_page);
void rdma_user_mmap_entry_remove(struct rdma_user_mmap_entry *entry);
u64 rdma_user_mmap_get_offset(const struct rdma_user_mmap_entry *entry);
struct rdma_user_mmap_entry *rdma_user_mmap_entry_get(struct ib_ucontext *uctx,
						      struct vm_area_struct *vma);
void rdma_user_mmap_entry_put(struct rdma_user_mmap_entry *entry);

#endif
