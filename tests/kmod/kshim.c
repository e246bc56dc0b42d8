// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory, locks and tables behind the shim headers.
#include <linux/completion.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>
#include <rdma/uverbs_ioctl.h>

#include <stdio.h>

void (*kshim_on_read)(const volatile void *at, size_t len);
void (*kshim_on_load)(const volatile void *at, size_t len);
void (*kshim_on_yield)(bool must);
void (*kshim_on_bug)(const char *claim, const char *file, int line);
unsigned long kshim_allocated;
unsigned long kshim_alloc_fails;

void kshim_bug(const char *claim, const char *file, int line)
{
	if (kshim_on_bug)
		kshim_on_bug(claim, file, line);
	fprintf(stderr, "%s:%d: the kernel would not bear: %s\n", file, line, claim);
	abort();
}

void kshim_yield(bool must)
{
	if (kshim_on_yield)
		kshim_on_yield(must);
	else if (must)
		kshim_bug("a thread waits for itself", __FILE__, __LINE__);
}

void *kshim_copy(void *dst, const void *src, size_t len)
{
	size_t at = 0, n;

	if (!kshim_on_read)
		return len ? (memcpy)(dst, src, len) : dst;
	for (; at < len; at += n) {
		n = len - at < 8 ? len - at : 8;
		(memcpy)((char *)dst + at, (const char *)src + at, n);
		kshim_read((const char *)src + at, n);
	}
	return dst;
}

static bool alloc_fails(void)
{
	return kshim_alloc_fails > 0 && --kshim_alloc_fails == 0;
}

void *kshim_alloc(size_t count, size_t size)
{
	void *ptr;

	if (alloc_fails())
		return NULL;
	ptr = calloc(count, size);
	kshim_allocated += ptr != NULL;
	return ptr;
}

void kfree(const void *ptr)
{
	kshim_allocated -= ptr != NULL;
	free((void *)ptr);
}

void kshim_lock(rwlock_t *lock, bool writes)
{
	kshim_yield(false);
	while (lock->held < 0 || (writes && lock->held > 0))
		kshim_yield(true);
	lock->held = writes ? -1 : lock->held + 1;
}

void kshim_unlock(rwlock_t *lock, bool writes)
{
	KSHIM_CHECK(writes ? lock->held == -1 : lock->held > 0);
	lock->held = writes ? 0 : lock->held - 1;
	kshim_yield(false);
}

u32 get_random_u32(void)
{
	static u32 state = 1;

	return state = state * 1664525 + 1013904223;
}

static int slot_of(const struct xarray *xa, u32 index)
{
	for (int i = 0; i < XA_SLOTS; i++)
		if (xa->slots[i].used && xa->slots[i].index == index)
			return i;
	return -1;
}

static int slot_free(const struct xarray *xa)
{
	for (int i = 0; i < XA_SLOTS; i++)
		if (!xa->slots[i].used)
			return i;
	return -1;
}

static u32 index_after(u32 index, struct xa_limit limit)
{
	return index < limit.min || index >= limit.max ? limit.min : index + 1;
}

int xa_alloc_cyclic(struct xarray *xa, u32 *id, void *entry, struct xa_limit limit, u32 *next,
		    gfp_t gfp)
{
	u32 index;
	int slot;

	(void)gfp;
	while (xa->lock.held)
		kshim_yield(true);
	slot = slot_free(xa);
	if (slot < 0)
		return -EBUSY;
	if (alloc_fails()) {
		xa->bare_nodes = true;
		return -ENOMEM;
	}
	index = *next < limit.min || *next > limit.max ? limit.min : *next;
	while (slot_of(xa, index) >= 0)
		index = index_after(index, limit);
	xa->slots[slot].used = true;
	xa->slots[slot].index = *id = index;
	xa->slots[slot].entry = entry;
	*next = index_after(index, limit);
	return 0;
}

void *xa_load(struct xarray *xa, unsigned long index)
{
	int slot;

	kshim_yield(false);
	slot = slot_of(xa, index);
	return slot < 0 ? NULL : xa->slots[slot].entry;
}

void *xa_store(struct xarray *xa, unsigned long index, void *entry, gfp_t gfp)
{
	int slot = slot_of(xa, index);

	(void)gfp;
	KSHIM_CHECK(slot >= 0);
	xa->slots[slot].entry = entry;
	return NULL;
}

void *xa_erase(struct xarray *xa, unsigned long index)
{
	int slot;
	void *entry;

	xa_lock(xa);
	slot = slot_of(xa, index);
	KSHIM_CHECK(slot >= 0);
	xa->slots[slot].used = false;
	entry = xa->slots[slot].entry;
	xa_unlock(xa);
	return entry;
}

bool xa_empty(const struct xarray *xa)
{
	unsigned long index = 0;

	return !xa->bare_nodes && !xa_find(xa, &index, ULONG_MAX, XA_PRESENT);
}

void *xa_find(const struct xarray *xa, unsigned long *index, unsigned long max, unsigned int mark)
{
	void *entry;

	(void)mark;
	return kshim_xa_next(xa, index, &entry) && *index <= max ? entry : NULL;
}

void xa_destroy(struct xarray *xa)
{
	unsigned long index = 0;

	KSHIM_CHECK(!xa_find(xa, &index, ULONG_MAX, XA_PRESENT));
	xa->bare_nodes = false;
}

bool kshim_xa_next(const struct xarray *xa, unsigned long *index, void **entry)
{
	int found = -1;

	for (int i = 0; i < XA_SLOTS; i++)
		if (xa->slots[i].used && xa->slots[i].index >= *index &&
		    (found < 0 || xa->slots[i].index < xa->slots[found].index))
			found = i;
	if (found < 0)
		return false;
	*index = xa->slots[found].index;
	*entry = xa->slots[found].entry;
	return true;
}
