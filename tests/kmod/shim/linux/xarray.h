// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A table of pointers by number.
#ifndef KSHIM_XARRAY_H
#define KSHIM_XARRAY_H

#include <linux/slab.h>
#include <linux/spinlock.h>

#define XA_SLOTS 64

struct xarray {
	spinlock_t lock;
	bool bare_nodes; /* an insert ran out of memory: they have no entry, and the table is not empty */
	struct {
		bool used;
		u32 index;
		void *entry;
	} slots[XA_SLOTS];
};

struct xa_limit {
	u32 min, max;
};

#define XA_LIMIT(low, high) ((struct xa_limit){ .min = (low), .max = (high) })
#define xa_limit_32b XA_LIMIT(0, U32_MAX)
#define XA_FLAGS_ALLOC1 1
#define XA_PRESENT 8
#define DEFINE_XARRAY_FLAGS(name, flags) struct xarray name
#define xa_lock(xa) spin_lock(&(xa)->lock)
#define xa_unlock(xa) spin_unlock(&(xa)->lock)
#define xa_for_each(xa, index, pos) \
	for ((index) = 0; kshim_xa_next(xa, &(index), (void **)&(pos)); (index)++)

int xa_alloc_cyclic(struct xarray *xa, u32 *id, void *entry, struct xa_limit limit, u32 *next,
		    gfp_t gfp);
void *xa_load(struct xarray *xa, unsigned long index);
void *xa_store(struct xarray *xa, unsigned long index, void *entry, gfp_t gfp);
void *xa_erase(struct xarray *xa, unsigned long index);
/* Of an index that is reserved and has no entry. */
#define xa_release(xa, index) ((void)xa_erase(xa, index))
bool xa_empty(const struct xarray *xa);
/* The first entry at *index or above; NULL: there is none. */
void *xa_find(const struct xarray *xa, unsigned long *index, unsigned long max, unsigned int mark);
void xa_destroy(struct xarray *xa);
/* The first entry at *index or above. */
bool kshim_xa_next(const struct xarray *xa, unsigned long *index, void **entry);

#endif
