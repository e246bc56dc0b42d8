// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PDs, parent domains and thread domains. A thread domain is a promise of the program that we do
// not need: every object is safe for many threads.
#include "verbs/pd.h"

#include "net/base/io_now.h"
#include "verbs/context.h"
#include "verbs/fail.h"
#include "verbs/limits.h"
#include "verbs/port_watch.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

static struct vb_limit pds = { .max = VB_PD_MAX };

static void pd_free(struct vb_pd *pd);

static struct vb_pd *pd_alloc(struct ibv_context *context)
{
	struct vb_pd *pd;

	if (!vb_limit_take(&pds))
		goto none;
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		goto give;
	pd->ibv.context = context;
	pd->base = pd;
	vb_context_get(context);
	vb_context_count(context, 1, 0, 0);
	return pd;

give:
	vb_limit_give(&pds);
none:
	errno = ENOMEM;
	return NULL;
}

static void pd_share(struct vb_pd *pd)
{
	vb_share_add(&pd->shared, VB_KIND_PD, pd->ibv.context);
	pd->ibv.handle = pd->shared.handle;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_pd *pd = pd_alloc(context);

	vb_port_watch_look(context);
	if (!pd)
		return NULL;
	pd_share(pd);
	return &pd->ibv;
}

/* EBUSY while an object made in the PD lives. An import is given back. */
int ibv_dealloc_pd(struct ibv_pd *ibv_pd)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_pd *pd = vb_pd_of(ibv_pd);

	if (pd->imported) {
		if (atomic_load_explicit(&pd->shared.users, memory_order_acquire) > 1)
			return vb_fail(EBUSY);
		vb_pd_put(ibv_pd);
		return 0;
	}
	if (!vb_share_remove(&pd->shared))
		return vb_fail(EBUSY);
	pd_free(pd);
	return 0;
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	struct vb_shared *shared = vb_share_take(context, VB_KIND_PD, pd_handle);
	struct vb_pd *pd;

	if (!shared)
		return NULL;
	struct vb_pd *found = (void *)((char *)shared - offsetof(struct vb_pd, shared));

	pd = pd_alloc(context);
	if (pd) {
		pd->base = found->base;
		vb_pd_get(&pd->base->ibv);
		pd->imported = true;
		vb_pd_get(&pd->ibv);
		pd->ibv.handle = pd_handle;
	}
	vb_pd_put(&found->ibv);
	return pd ? &pd->ibv : NULL;
}

/* Objects that were made in the import go on. */
void ibv_unimport_pd(struct ibv_pd *pd)
{
	if (vb_pd_of(pd)->imported)
		vb_pd_put(pd);
	else
		ibv_dealloc_pd(pd);
}

void vb_pd_put(struct ibv_pd *ibv_pd)
{
	struct vb_pd *pd = vb_pd_of(ibv_pd);
	bool imported = pd->imported;

	/*
	 * Release pairs with the acquire in vb_share_remove, and with the acquire here of an
	 * import's last user.
	 */
	if (atomic_fetch_sub_explicit(&pd->shared.users, 1, memory_order_acq_rel) == 1 && imported)
		pd_free(pd);
}

static void pd_free(struct vb_pd *pd)
{
	struct ibv_context *context = pd->ibv.context;

	if (pd->base != pd)
		vb_pd_put(&pd->base->ibv);
	if (pd->td)
		atomic_fetch_sub_explicit(&pd->td->users, 1, memory_order_release);
	free(pd);
	vb_limit_give(&pds);
	vb_context_count(context, -1, 0, 0);
	vb_context_put(context);
}

struct ibv_td *vb_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
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
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_td *td = (struct vb_td *)ibv_td;
	struct ibv_context *context = ibv_td->context;

	if (atomic_load_explicit(&td->users, memory_order_acquire))
		return vb_fail(EBUSY);
	free(td);
	vb_context_put(context);
	return 0;
}

/* resource_type is the kind; its upper half would name one of rdma-core's drivers. */
static void *memory_alloc(void *arg, size_t size, enum aw_mem_kind kind)
{
	struct vb_pd *pd = arg;
	void *at = pd->alloc(&pd->ibv, pd->pd_context, size, AW_MEM_ALIGN, kind);

	return at == IBV_ALLOCATOR_USE_DEFAULT ? AW_MEM_DEFAULT : at;
}

static void memory_free(void *arg, void *at, enum aw_mem_kind kind)
{
	struct vb_pd *pd = arg;

	pd->free(&pd->ibv, pd->pd_context, at, kind);
}

static int parent_check(const struct ibv_parent_domain_init_attr *attr)
{
	uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			 IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;

	if (attr->comp_mask & ~known)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS &&
	    (!attr->alloc || !attr->free))
		return EINVAL;
	return attr->pd ? 0 : EINVAL;
}

struct ibv_pd *vb_alloc_parent_domain(struct ibv_context *context,
				      struct ibv_parent_domain_init_attr *attr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	int err = parent_check(attr);
	struct vb_pd *pd;

	if (err) {
		errno = err;
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
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		pd->pd_context = attr->pd_context;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		pd->alloc = attr->alloc;
		pd->free = attr->free;
		pd->memory = (struct aw_mem_source){ memory_alloc, memory_free, pd };
	}
	pd_share(pd);
	return &pd->ibv;
}
