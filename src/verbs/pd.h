// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A PD, or a parent domain, which stands for the PD that it was made of.
#ifndef VERBS_PD_H
#define VERBS_PD_H

#include "net/mem/mem.h"
#include "verbs/share.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_td {
	struct ibv_td ibv;
	_Atomic uint32_t users; /* parent domains */
};

struct vb_pd {
	struct ibv_pd ibv;
	struct vb_pd *base; /* the PD itself, by which MRs and QPs are compared */
	/* of a parent domain, or NULL */
	struct vb_td *td;
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size, size_t alignment,
		       uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr, uint64_t resource_type);
	void *pd_context;
	struct aw_mem_source memory; /* for objects that are made in it: calls alloc and free */

	/* an import is a user of itself until it is given back; the last user frees it */
	bool imported;
	struct vb_shared shared; /* users: MRs, windows, QPs, SRQs, parent domains and imports */
};

static inline struct vb_pd *vb_pd_of(struct ibv_pd *pd)
{
	return (struct vb_pd *)pd;
}

/* An import stands for another PD as well. */
static inline bool vb_pd_is_parent(struct ibv_pd *pd)
{
	return vb_pd_of(pd)->base != vb_pd_of(pd) && !vb_pd_of(pd)->imported;
}

static inline const void *vb_pd_key(struct ibv_pd *pd)
{
	return vb_pd_of(pd)->base;
}

/* A user of a PD keeps it from being deallocated. */
static inline void vb_pd_get(struct ibv_pd *pd)
{
	atomic_fetch_add_explicit(&vb_pd_of(pd)->shared.users, 1, memory_order_relaxed);
}

/* The source of memory for the queues of objects made in the PD; NULL: the heap. */
static inline const struct aw_mem_source *vb_pd_memory(struct ibv_pd *pd)
{
	return vb_pd_of(pd)->alloc ? &vb_pd_of(pd)->memory : NULL;
}

/* The last user of an import frees it. */
void vb_pd_put(struct ibv_pd *pd);

#endif
