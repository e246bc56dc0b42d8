// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PDs, MRs and device memory of another process. An unimport gives the object up here, and destroys nothing.
#include "check/hook/hook.h"
#include "check/model/registered.h"

#include <errno.h>

/* An MR's access rights are not known here. */
#define ALL_ACCESS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	struct ibv_pd *pd = NULL;

	aw_inside_enter();
	aw_hook_context(context);
	if (aw_hook_may("ibv_import_pd"))
		pd = aw_real()->ibv_import_pd(context, pd_handle);
	if (pd)
		aw_pd_add(pd, pd, NULL);
	else
		aw_hook_failed("ibv_import_pd", errno);
	aw_inside_leave();
	return pd;
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
	struct aw_object *object;

	aw_inside_enter();
	object = aw_object_get(pd, AW_KIND_PD);
	if (!object || aw_object_goes(object))
		aw_real()->ibv_unimport_pd(pd);
	aw_object_put(object);
	aw_inside_leave();
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct ibv_mr *mr = NULL;

	aw_inside_enter();
	if (aw_hook_may("ibv_import_mr"))
		mr = aw_real()->ibv_import_mr(pd, mr_handle);
	if (mr)
		aw_mr_shadow_add(mr, (uintptr_t)mr->addr, ALL_ACCESS, false);
	else
		aw_hook_failed("ibv_import_mr", errno);
	aw_inside_leave();
	return mr;
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	struct aw_object *object;

	aw_inside_enter();
	object = aw_object_get(mr, AW_KIND_MR);
	if (object)
		aw_registered_remove((struct aw_mr_shadow *)object);
	if (!object || aw_object_goes(object))
		aw_real()->ibv_unimport_mr(mr);
	aw_object_put(object);
	aw_inside_leave();
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	struct ibv_dm *dm = NULL;

	aw_inside_enter();
	aw_hook_context(context);
	if (aw_hook_may("ibv_import_dm"))
		dm = aw_real()->ibv_import_dm(context, dm_handle);
	if (!dm)
		aw_hook_failed("ibv_import_dm", errno);
	aw_inside_leave();
	return dm;
}
