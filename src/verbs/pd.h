// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A PD, or a parent domain, which stands for the PD that it was made of.
#ifndef VERBS_PD_H
#define VERBS_PD_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>

struct vb_td {
	struct ibv_td ibv;
	_Atomic uint32_t users; /* parent domains */
};

struct vb_pd {
	struct ibv_pd ibv;
	struct vb_pd *base; /* the PD itself; what MRs and QPs are compared by */
	struct vb_td *td; /* of a parent domain, or NULL */
	_Atomic uint32_t users; /* MRs, windows, QPs, SRQs and parent domains */
};

static inline struct vb_pd *vb_pd_of(struct ibv_pd *pd)
{
	return (struct vb_pd *)pd;
}

static inline const void *vb_pd_key(struct ibv_pd *pd)
{
	return vb_pd_of(pd)->base;
}

/* A user of a PD keeps it from being deallocated. */
static inline void vb_pd_get(struct ibv_pd *pd)
{
	atomic_fetch_add_explicit(&vb_pd_of(pd)->users, 1, memory_order_relaxed);
}

/* Release pairs with the acquire in ibv_dealloc_pd: the user is done with the PD's memory. */
static inline void vb_pd_put(struct ibv_pd *pd)
{
	atomic_fetch_sub_explicit(&vb_pd_of(pd)->users, 1, memory_order_release);
}

#endif
