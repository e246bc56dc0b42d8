// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The SRQ of an id.
#include "rdmacm/fail.h"

#include "net/base/io_now.h"

#include <rdma/rdma_verbs.h>

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	if (!id || !attr || !id->verbs || id->srq)
		return aw_cm_fail(EINVAL);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	if (attr->pd->context != id->verbs)
		return aw_cm_fail(EINVAL);
	struct ibv_srq *srq = ibv_create_srq_ex(id->verbs, attr);

	if (!srq)
		return -1;
	id->pd = attr->pd;
	id->srq = srq;
	return 0;
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	if (!attr)
		return aw_cm_fail(EINVAL);
	struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd,
	};
	int ret = rdma_create_srq_ex(id, &ex);

	if (ret == 0)
		attr->attr = ex.attr;
	return ret;
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	if (!id || !id->srq)
		return;
	ibv_destroy_srq(id->srq);
	id->srq = NULL;
}
