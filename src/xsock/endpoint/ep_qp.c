// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The endpoint's verbs objects: QP, CQs, memory.
#include "xsock/endpoint/ep_impl.h"

#include <errno.h>

static int make_qp(struct aw_xs_ep *ep, uint32_t sends) AW_REQUIRES(ep->lock)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = ep,
		.send_cq = ep->send_cq.cq,
		.recv_cq = ep->recv_cq.cq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = sends,
			.max_recv_wr = ep->recv_count,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = ep->options.inline_data,
		},
	};

	ep->pd = ibv_alloc_pd(ep->id->verbs);
	if (!ep->pd || rdma_create_qp(ep->id, ep->pd, &attr) != 0)
		return -errno;
	ep->inline_max = attr.cap.max_inline_data;
	return ep->inline_max < AW_XS_IOMAP_LEN ? -EOPNOTSUPP : 0;
}

int aw_xs_ep_qp_create(struct aw_xs_ep *ep)
{
	const int shared = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	uint32_t sends = ep->options.sq_size + AW_XS_SQ_SPARE + AW_XS_CALLER_WRS_MAX;
	struct ibv_context *verbs = ep->id->verbs;
	int err;

	ep->lends = aw_xs_cm_extension("anywarp_cm_initiate") != NULL;
	ep->sleep_limit = (void (*)(int64_t))aw_xs_cm_extension("anywarp_sleep_limit");
	ep->recv_count = ep->options.rq_size + AW_XS_RQ_SPARE;

	ep->channel = ibv_create_comp_channel(verbs);
	if (!ep->channel)
		return -errno;
	ep->send_cq.cq = ibv_create_cq(verbs, (int)sends, ep, ep->channel, 0);
	ep->recv_cq.cq = ibv_create_cq(verbs, (int)ep->recv_count, ep, ep->channel, 0);
	if (!ep->send_cq.cq || !ep->recv_cq.cq)
		return -errno;

	err = make_qp(ep, sends);
	if (err)
		return err;

	ep->own_mr = ibv_reg_mr(ep->pd, ep->memory, ep->shared_at, IBV_ACCESS_LOCAL_WRITE);
	ep->shared_mr = ibv_reg_mr(ep->pd, ep->memory + ep->shared_at,
				   ep->memory_len - ep->shared_at, shared);
	if (!ep->own_mr || !ep->shared_mr)
		return -errno;
	ep->stream.mem.recv_key = ep->stream.mem.target_key = ep->shared_mr->rkey;
	return aw_xs_ep_post_receives(ep, 0, ep->recv_count);
}

static void drop_mr(struct ibv_mr **mr)
{
	if (*mr)
		ibv_dereg_mr(*mr);
	*mr = NULL;
}

static void drop_cq(struct aw_xs_cq *cq)
{
	if (!cq->cq)
		return;
	ibv_ack_cq_events(cq->cq, cq->unacked);
	ibv_destroy_cq(cq->cq);
	cq->cq = NULL;
}

void aw_xs_ep_qp_destroy(struct aw_xs_ep *ep)
{
	if (ep->id && ep->id->qp)
		rdma_destroy_qp(ep->id);
	aw_xs_ep_fail_caller_wrs(ep);
	drop_mr(&ep->own_mr);
	drop_mr(&ep->shared_mr);
	drop_cq(&ep->send_cq);
	drop_cq(&ep->recv_cq);
	if (ep->pd)
		ibv_dealloc_pd(ep->pd);
	ep->pd = NULL;
	if (ep->channel)
		ibv_destroy_comp_channel(ep->channel);
	ep->channel = NULL;
}
