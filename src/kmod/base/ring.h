// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A ring that a program may map: SQ, RQ, SRQ and CQ. A mapped ring is hostile memory: an entry is
// copied once, and the copy is checked.
#ifndef KMOD_BASE_RING_H
#define KMOD_BASE_RING_H

#include <rdma/ib_verbs.h>
#include <rdma/siw-abi.h>
#include <rdma/uverbs_ioctl.h>

struct awk_ucontext {
	struct ib_ucontext base;
};

/* The context that the request is of; NULL: the kernel's. */
static inline struct ib_ucontext *awk_ucontext_of(struct ib_udata *udata)
{
	struct awk_ucontext *uctx = rdma_udata_to_drv_context(udata, struct awk_ucontext, base);

	return uctx ? &uctx->base : NULL;
}

struct awk_ring {
	void *mem; /* entries; zeroed */
	u32 count; /* of entries: a power of two, or 0: no ring */
	u64 key; /* user: the offset to mmap; libsiw takes 0 where there is no ring */
	struct awk_ring_map *map; /* user: owns mem */
};

/* uctx NULL: a kernel's ring. tail: bytes behind the entries. */
int awk_ring_create(struct awk_ring *ring, struct ib_ucontext *uctx, u32 count, size_t entry,
		    size_t tail);
/*
 * Called when nothing here uses the ring any more. Mappings stay until the program is done with
 * them.
 */
void awk_ring_destroy(struct awk_ring *ring);

/* The functions of struct ib_device_ops. */
int awk_ring_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma);
void awk_ring_mmap_free(struct rdma_user_mmap_entry *entry);

#endif
