// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The SRQ of an id.
#include "rdmacm/cqs.h"
#include "rdmacm/devices.h"
#include "rdmacm/fail.h"
#include "rdmacm/qp_ref.h"

#include "net/base/io_now.h"

#include <rdma/rdma_verbs.h>

/* The domain and the CQ of an XRC SRQ, where the program leaves them to the id. 0 or an errno. */
static int complete_xrc(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	const uint32_t both = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd)
		attr->xrcd = aw_cm_device_xrcd();
	if (!attr->xrcd)
		return errno;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq) {
		if (!id->recv_cq && aw_cm_cqs_create(id, 0, attr->attr.max_wr) < 0)
			return errno;
		attr->cq = id->recv_cq;
	}
	attr->comp_mask |= both;
	return 0;
}

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
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC) {
		int err = complete_xrc(id, attr);

		if (err)
			return aw_cm_fail(err);
	}
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
	if (!id || !attr)
		return aw_cm_fail(EINVAL);
	struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC,
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
	/* Those that outlived the QP for the SRQ. A lock of the parent's is not taken. */
	if (id->qp_type == IBV_QPT_XRC_RECV && !aw_cm_id_inherited(aw_cm_id_of(id)) &&
	    !aw_cm_qp_exists(aw_cm_id_of(id)))
		aw_cm_cqs_destroy(id);
}
