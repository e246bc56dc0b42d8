// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ibv_advise_mr: brings parts of on-demand MRs in before they are used. The work is done when the
// call returns, with or without IBV_ADVISE_MR_FLAG_FLUSH.
#include "net/mem/mapping.h"
#include "net/mr/mrtab.h"
#include "verbs/context.h"
#include "verbs/fail.h"
#include "verbs/pd.h"

#include <errno.h>

/* The checks are those of ibv_advise_mr(3). */
static int range_advise(const void *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
			const struct ibv_sge *sge)
{
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	struct aw_mr *mr = aw_mr_get(sge->lkey);
	int err = 0;

	if (!mr)
		return ENOENT;
	if (mr->pd != pd)
		err = EPERM;
	else if (mr->window || !(mr->access & AW_ACCESS_ON_DEMAND))
		err = EINVAL;
	else if (write && !(mr->access & AW_ACCESS_LOCAL_WRITE))
		err = EPERM;
	else if (aw_mr_check(mr, pd, NULL, 0, sge->addr, sge->length))
		err = EFAULT;
	/* PREFETCH_NO_FAULT needs no work: a page that the CPU has is never absent here. */
	else if (sge->length && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT &&
		 !aw_mapping_reach(aw_mr_at(mr, sge->addr), sge->length, write) &&
		 flags & IBV_ADVISE_MR_FLAG_FLUSH)
		err = EFAULT;
	aw_mr_put(mr);
	return err;
}

int vb_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		 struct ibv_sge *sg_list, uint32_t num_sge)
{
	int err = 0;

	if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return vb_fail(ENOTSUP);
	if (!num_sge || flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH)
		return vb_fail(EINVAL);
	for (uint32_t i = 0; i < num_sge && !err; i++)
		err = range_advise(vb_pd_key(pd), advice, flags, &sg_list[i]);
	return vb_fail(err);
}
