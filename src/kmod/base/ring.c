// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rings, and their mappings: the memory of a program's ring lives as long as anything may map it.
#include "kmod/base/ring.h"

#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

/*
 * libsiw takes the key SIW_INVAL_UOBJ_KEY for no ring, though it is the offset of a page: all keys
 * are greater.
 */
#define KEY_PAGE_MIN ((SIW_INVAL_UOBJ_KEY >> PAGE_SHIFT) + 1)

struct awk_ring_map {
	struct rdma_user_mmap_entry entry;
	void *mem;
};

static int ring_offer(struct awk_ring *ring, struct ib_ucontext *uctx, size_t bytes)
{
	struct awk_ring_map *map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);
	int err;

	if (!map)
		return -ENOMEM;
	map->mem = ring->mem;
	err = rdma_user_mmap_entry_insert_range(uctx, &map->entry, bytes, KEY_PAGE_MIN, U32_MAX);
	if (err) {
		kfree(map);
		return err;
	}
	ring->map = map;
	ring->key = rdma_user_mmap_get_offset(&map->entry);
	return 0;
}

int awk_ring_create(struct awk_ring *ring, struct ib_ucontext *uctx, u32 count, size_t entry,
		    size_t tail)
{
	size_t bytes = PAGE_ALIGN(count * entry + tail);
	int err = 0;

	*ring = (struct awk_ring){ .count = count };
	if (count == 0)
		return 0;
	/*
	 * A program's rings count as its memory: it makes as many CQs as it likes. The program gets
	 * an error for a shortage, and the log has none.
	 */
	ring->mem = __vmalloc(bytes,
			      (uctx ? GFP_KERNEL_ACCOUNT : GFP_KERNEL) | __GFP_ZERO | __GFP_NOWARN);
	if (!ring->mem)
		return -ENOMEM;
	if (uctx)
		err = ring_offer(ring, uctx, bytes);
	if (err) {
		vfree(ring->mem);
		ring->mem = NULL;
	}
	return err;
}

void awk_ring_destroy(struct awk_ring *ring)
{
	if (ring->map)
		rdma_user_mmap_entry_remove(&ring->map->entry);
	else
		vfree(ring->mem);
	ring->map = NULL;
	ring->mem = NULL;
}

/* As remap_vmalloc_range, which takes only memory of vmalloc_user. The mapping holds each page. */
static int ring_insert(struct vm_area_struct *vma, const u8 *mem)
{
	unsigned long at;
	int err = 0;

	for (at = vma->vm_start; at < vma->vm_end && !err; at += PAGE_SIZE, mem += PAGE_SIZE)
		err = vm_insert_page(vma, at, vmalloc_to_page(mem));
	return err;
}

int awk_ring_mmap(struct ib_ucontext *uctx, struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;
	int err = -EINVAL;

	if (vma->vm_start & (PAGE_SIZE - 1))
		return -EINVAL;
	entry = rdma_user_mmap_entry_get(uctx, vma);
	if (!entry)
		return -EINVAL;
	/* The verbs core has seen that the mapping is as long as the entry. */
	err = ring_insert(vma, container_of(entry, struct awk_ring_map, entry)->mem);
	rdma_user_mmap_entry_put(entry);
	return err;
}

void awk_ring_mmap_free(struct rdma_user_mmap_entry *entry)
{
	struct awk_ring_map *map = container_of(entry, struct awk_ring_map, entry);

	vfree(map->mem);
	kfree(map);
}
