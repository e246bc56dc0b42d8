// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PDs, thread domains, MRs and MWs.
#include "check/explain/explain.h"
#include "check/hook/failure.h"
#include "check/hook/ops.h"
#include "check/hook/vary.h"
#include "check/model/queue.h"
#include "check/model/registered.h"

#include <errno.h>

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = NULL;

	aw_inside_enter();
	aw_hook_context(context);
	if (aw_hook_may("ibv_alloc_pd"))
		pd = aw_real()->ibv_alloc_pd(context);
	if (pd)
		aw_pd_add(pd, pd, NULL);
	else
		aw_hook_failed("ibv_alloc_pd", errno);
	aw_inside_leave();
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct aw_object *object;
	int err;

	aw_inside_enter();
	object = aw_object_get(pd, AW_KIND_PD);
	if (aw_destroy_begin("ibv_dealloc_pd", object)) {
		err = aw_real()->ibv_dealloc_pd(pd);
		aw_destroy_end("ibv_dealloc_pd", object, err);
	} else {
		err = errno;
	}
	aw_object_put(object);
	aw_inside_leave();
	return err;
}

struct ibv_td *aw_op_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct aw_context_shadow *device;
	struct ibv_td *td = NULL;

	aw_inside_enter();
	device = aw_ops_get(context);
	if (aw_hook_may("ibv_alloc_td"))
		td = device->extended.alloc_td(context, attr);
	if (td)
		aw_td_add(td);
	else
		aw_hook_failed("ibv_alloc_td", errno);
	aw_object_put(&device->object);
	aw_inside_leave();
	return td;
}

int aw_op_dealloc_td(struct ibv_td *td)
{
	struct aw_context_shadow *device;
	struct aw_object *object;
	int err;

	aw_inside_enter();
	device = aw_ops_get(td->context);
	object = aw_object_get(td, AW_KIND_TD);
	if (aw_destroy_begin("ibv_dealloc_td", object)) {
		err = device->extended.dealloc_td(td);
		aw_destroy_end("ibv_dealloc_td", object, err);
	} else {
		err = errno;
	}
	aw_object_put(object);
	aw_object_put(&device->object);
	aw_inside_leave();
	return err;
}

struct ibv_pd *aw_op_alloc_parent_domain(struct ibv_context *context,
					 struct ibv_parent_domain_init_attr *attr)
{
	struct aw_context_shadow *device;
	struct ibv_pd *pd = NULL;

	aw_inside_enter();
	device = aw_ops_get(context);
	if (aw_hook_may("ibv_alloc_parent_domain"))
		pd = device->extended.alloc_parent_domain(context, attr);
	if (pd)
		aw_pd_add(pd, attr->pd, attr->td);
	else
		aw_hook_failed("ibv_alloc_parent_domain", errno);
	aw_object_put(&device->object);
	aw_inside_leave();
	return pd;
}

/* A registration that was made, or says why it was not. */
static struct ibv_mr *mr_made(const char *call, struct ibv_mr *mr, uint64_t iova, unsigned access,
			      bool is_memory)
{
	if (mr)
		aw_mr_shadow_add(mr, iova, access, is_memory);
	else
		aw_hook_failed(call, errno);
	return mr;
}

static struct ibv_mr *mr_reg_failed(const struct ibv_pd *pd, const void *addr, size_t length,
				    unsigned access)
{
	struct aw_context_shadow *device = aw_context_get(pd->context);
	const int err = errno;
	char why[AW_EXPLAIN_MAX];

	aw_explain_reg_mr(addr, length, access, device ? &device->attr : NULL, err, why);
	aw_failure_explain_memory("ibv_reg_mr", err, why);
	aw_object_put(device ? &device->object : NULL);
	errno = err;
	return NULL;
}

static bool like_allows_mr(size_t length, unsigned access)
{
	return aw_like_allows(aw_hook_like() ? aw_like_check_reg_mr(aw_hook_like(), length, access)
					     : 0);
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct ibv_mr *mr = NULL;

	aw_inside_enter();
	if (like_allows_mr(length, (unsigned)access) && aw_hook_may("ibv_reg_mr"))
		mr = aw_real()->ibv_reg_mr(pd, addr, length, access);
	if (mr)
		aw_mr_shadow_add(mr, (uintptr_t)addr, (unsigned)access, true);
	else
		mr_reg_failed(pd, addr, length, (unsigned)access);
	aw_inside_leave();
	return mr;
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	struct ibv_mr *mr = NULL;

	aw_inside_enter();
	if (like_allows_mr(length, (unsigned)access) && aw_hook_may("ibv_reg_mr_iova"))
		mr = aw_real()->ibv_reg_mr_iova(pd, addr, length, iova, access);
	if (mr)
		aw_mr_shadow_add(mr, iova, (unsigned)access, true);
	else
		mr_reg_failed(pd, addr, length, (unsigned)access);
	aw_inside_leave();
	return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned int access)
{
	struct ibv_mr *mr = NULL;

	aw_inside_enter();
	if (like_allows_mr(length, access) && aw_hook_may("ibv_reg_mr_iova2"))
		mr = aw_real()->ibv_reg_mr_iova2(pd, addr, length, iova, access);
	if (mr)
		aw_mr_shadow_add(mr, iova, access, true);
	else
		mr_reg_failed(pd, addr, length, access);
	aw_inside_leave();
	return mr;
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
				 int fd, int access)
{
	struct ibv_mr *mr = NULL;

	aw_inside_enter();
	if (aw_hook_may("ibv_reg_dmabuf_mr"))
		mr = aw_real()->ibv_reg_dmabuf_mr(pd, offset, length, iova, fd, access);
	mr = mr_made("ibv_reg_dmabuf_mr", mr, iova, (unsigned)access, false);
	aw_inside_leave();
	return mr;
}

struct ibv_mr *aw_op_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
			       size_t length, unsigned int access)
{
	struct aw_context_shadow *device;
	struct ibv_mr *mr = NULL;

	aw_inside_enter();
	device = aw_ops_get(pd->context);
	if (aw_hook_may("ibv_reg_dm_mr"))
		mr = device->extended.reg_dm_mr(pd, dm, dm_offset, length, access);
	mr = mr_made("ibv_reg_dm_mr", mr, 0, access | IBV_ACCESS_ZERO_BASED, false);
	aw_object_put(&device->object);
	aw_inside_leave();
	return mr;
}

/* Tells WRs under way that use the MR; their memory is looked at no more, since it may go next. */
static void mr_give_up(const struct aw_mr_shadow *mr)
{
	char name[AW_OBJECT_NAME_MAX];

	if (!mr || !mr->is_readable)
		return;
	aw_object_name(&mr->object, name);
	aw_memory_given_up(AW_RULE_MR_DEREGISTERED, name, "deregistered",
			   &(struct aw_memory){ .start = mr->memory,
						.end = mr->memory + (mr->end - mr->start),
						.lkey = &mr->object.number });
}

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	struct aw_object *object;
	int err;

	aw_inside_enter();
	object = aw_object_get(mr, AW_KIND_MR);
	const struct aw_mr_shadow *shadow = (struct aw_mr_shadow *)object;
	const unsigned rights = flags & IBV_REREG_MR_CHANGE_ACCESS ? (unsigned)access
				: shadow			   ? shadow->access
								   : 0;

	mr_give_up(shadow);
	err = aw_hook_may("ibv_rereg_mr")
		      ? aw_real()->ibv_rereg_mr(mr, flags, pd, addr, length, access)
		      : errno;
	if (err == 0) {
		if (object) {
			aw_registered_remove((struct aw_mr_shadow *)object);
			(void)aw_object_goes(object);
		}
		aw_mr_shadow_add(mr, (uintptr_t)mr->addr, rights, true);
	} else {
		aw_hook_failed("ibv_rereg_mr", err);
	}
	aw_object_put(object);
	aw_inside_leave();
	return err;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	struct aw_object *object;
	int err;

	aw_inside_enter();
	object = aw_object_get(mr, AW_KIND_MR);
	if (aw_destroy_begin("ibv_dereg_mr", object)) {
		mr_give_up((struct aw_mr_shadow *)object);
		if (object)
			aw_registered_remove((struct aw_mr_shadow *)object);
		err = aw_real()->ibv_dereg_mr(mr);
		aw_destroy_end("ibv_dereg_mr", object, err);
	} else {
		err = errno;
	}
	aw_object_put(object);
	aw_inside_leave();
	return err;
}

struct ibv_mw *aw_op_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct aw_context_shadow *device;
	struct ibv_mw *mw = NULL;

	aw_inside_enter();
	device = aw_ops_get(pd->context);
	if (aw_like_allows(aw_hook_like() ? aw_like_check_alloc_mw(aw_hook_like()) : 0) &&
	    aw_hook_may("ibv_alloc_mw"))
		mw = device->ops.alloc_mw(pd, type);
	if (mw)
		aw_plain_add(AW_KIND_MW, mw, pd->context);
	else
		aw_hook_failed("ibv_alloc_mw", errno);
	aw_object_put(&device->object);
	aw_inside_leave();
	return mw;
}

int aw_op_dealloc_mw(struct ibv_mw *mw)
{
	struct aw_context_shadow *device;
	struct aw_object *object;
	int err;

	aw_inside_enter();
	device = aw_ops_get(mw->context);
	object = aw_object_get(mw, AW_KIND_MW);
	if (aw_destroy_begin("ibv_dealloc_mw", object)) {
		err = device->ops.dealloc_mw(mw);
		aw_destroy_end("ibv_dealloc_mw", object, err);
	} else {
		err = errno;
	}
	aw_object_put(object);
	aw_object_put(&device->object);
	aw_inside_leave();
	return err;
}

int aw_op_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind)
{
	struct aw_context_shadow *device;
	struct aw_qp_shadow *shadow;
	int err;

	aw_inside_enter();
	device = aw_ops_get(qp->context);
	err = aw_hook_may("ibv_bind_mw") ? device->ops.bind_mw(qp, mw, mw_bind) : errno;
	shadow = err ? aw_qp_get(qp) : NULL;
	if (shadow)
		aw_failure_explain_bind(shadow, mw, mw_bind, err);
	else if (err)
		aw_hook_failed("ibv_bind_mw", err);
	aw_object_put(shadow ? &shadow->object : NULL);
	aw_object_put(&device->object);
	aw_inside_leave();
	return err;
}

int aw_op_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		    struct ibv_sge *sg_list, uint32_t num_sge)
{
	struct aw_context_shadow *device;
	int err;

	aw_inside_enter();
	device = aw_ops_get(pd->context);
	err = aw_hook_may("ibv_advise_mr")
		      ? device->extended.advise_mr(pd, advice, flags, sg_list, num_sge)
		      : errno;
	aw_object_put(&device->object);
	return aw_hook_end("ibv_advise_mr", err);
}

/* It has no memory that could be followed. */
struct ibv_mr *aw_op_alloc_null_mr(struct ibv_pd *pd)
{
	struct aw_context_shadow *device;
	struct ibv_mr *mr = NULL;

	aw_inside_enter();
	device = aw_ops_get(pd->context);
	if (aw_hook_may("ibv_alloc_null_mr"))
		mr = device->extended.alloc_null_mr(pd);
	if (!mr)
		aw_hook_failed("ibv_alloc_null_mr", errno);
	aw_object_put(&device->object);
	aw_inside_leave();
	return mr;
}
