// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CQs with a channel each, for the helpers of rdma_verbs.h: the CQ's context is the id.
#include "rdmacm/cqs.h"

#include <limits.h>
#include <stdbool.h>

static int create(struct rdma_cm_id *id, uint32_t room, struct ibv_comp_channel **channel,
		  struct ibv_cq **cq)
{
	if (!room || room > INT_MAX)
		return 0;
	*channel = ibv_create_comp_channel(id->verbs);
	if (!*channel)
		return -1;
	*cq = ibv_create_cq(id->verbs, (int)room, id, *channel, 0);
	return *cq ? 0 : -1;
}

int aw_cm_cqs_create(struct rdma_cm_id *id, uint32_t send_room, uint32_t recv_room)
{
	if (create(id, send_room, &id->send_cq_channel, &id->send_cq) == 0 &&
	    create(id, recv_room, &id->recv_cq_channel, &id->recv_cq) == 0)
		return 0;
	int err = errno;

	aw_cm_cqs_destroy(id);
	errno = err;
	return -1;
}

/* True while the id's SRQ completes in a CQ of the id's, which then goes with the SRQ. */
static bool srq_needs_cq(const struct rdma_cm_id *id)
{
	return id->qp_type == IBV_QPT_XRC_RECV && id->srq;
}

/* One CQ may serve both queues, and two CQs may have one channel, where they are the program's. */
void aw_cm_cqs_destroy(struct rdma_cm_id *id)
{
	if (srq_needs_cq(id))
		return;
	if (id->recv_cq)
		ibv_destroy_cq(id->recv_cq);
	if (id->send_cq && id->send_cq != id->recv_cq)
		ibv_destroy_cq(id->send_cq);
	if (id->recv_cq_channel)
		ibv_destroy_comp_channel(id->recv_cq_channel);
	if (id->send_cq_channel && id->send_cq_channel != id->recv_cq_channel)
		ibv_destroy_comp_channel(id->send_cq_channel);
	id->recv_cq = id->send_cq = NULL;
	id->recv_cq_channel = id->send_cq_channel = NULL;
}
