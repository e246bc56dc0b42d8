// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PDs, parent domains and thread domains. A thread domain is a promise of the program that we do
// not need: every object is safe for many threads.
#include "verbs/pd.h"

#include "verbs/context.h"
#include "verbs/limits.h"

#include <errno.h>
#include <stdlib.h>

static struct vb_limit pds = { .max = VB_PD_MAX };
static _Atomic uint32_t pd_handles;

static struct vb_pd *pd_alloc(struct ibv_context *context)
{
	struct vb_pd *pd;

	if (!vb_limit_take(&pds))
		goto none;
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		goto give;
	pd->ibv.context = context;
	pd->ibv.handle = atomic_fetch_add_explicit(&pd_handles, 1, memory_order_relaxed);
	pd->base = pd;
	vb_context_get(context);
	return pd;

give:
	vb_limit_give(&pds);
none:
	errno = ENOMEM;
	return NULL;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct vb_pd *pd = pd_alloc(context);

	return pd ? &pd->ibv : NULL;
}

/* EBUSY while something made in it lives. */
int ibv_dealloc_pd(struct ibv_pd *ibv_pd)
{
	struct vb_pd *pd = vb_pd_of(ibv_pd);
	struct ibv_context *context = ibv_pd->context;

	if (atomic_load_explicit(&pd->users, memory_order_acquire))
		return EBUSY;
	if (pd->base != pd)
		vb_pd_put(&pd->base->ibv);
	if (pd->td)
		atomic_fetch_sub_explicit(&pd->td->users, 1, memory_order_release);
	free(pd);
	vb_limit_give(&pds);
	vb_context_put(context);
	return 0;
}

struct ibv_td *vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct vb_td *td;

	if (attr->comp_mask) {
		errno = EINVAL;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td) {
		errno = ENOMEM;
		return NULL;
	}
	td->ibv.context = context;
	vb_context_get(context);
	return &td->ibv;
}

int vb_dealloc_td(struct ibv_td *ibv_td)
{
	struct vb_td *td = (struct vb_td *)ibv_td;
	struct ibv_context *context = ibv_td->context;

	if (atomic_load_explicit(&td->users, memory_order_acquire))
		return EBUSY;
	free(td);
	vb_context_put(context);
	return 0;
}

/* Allocators of the program's own are not supported: a program asks for them to save memory. */
struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *context,
				      struct ibv_parent_domain_init_attr *attr)
{
	struct vb_pd *pd;

	if (attr->comp_mask & ~(uint32_t)IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!attr->pd) {
		errno = EINVAL;
		return NULL;
	}
	pd = pd_alloc(context);
	if (!pd)
		return NULL;
	pd->base = vb_pd_of(attr->pd)->base;
	vb_pd_get(&pd->base->ibv);
	pd->td = (struct vb_td *)attr->td;
	if (pd->td)
		atomic_fetch_add_explicit(&pd->td->users, 1, memory_order_relaxed);
	return &pd->ibv;
}
