// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Endpoints: a synchronous id with its QP in one call, or a listener that makes such ids.
#include "rdmacm/event.h"
#include "rdmacm/fail.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#define RESOLVE_MS 2000

static int make_passive(struct rdma_cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
			const struct ibv_qp_init_attr *attr)
{
	struct aw_cm_id *cm = aw_cm_id_of(id);

	if (rdma_bind_addr(id, res->ai_src_addr) < 0)
		return -1;
	if (pd)
		cm->id.pd = pd;
	if (!attr)
		return 0;
	/* For the QPs of the ids that rdma_get_request will return. */
	cm->ep_attr = malloc(sizeof(*attr));
	if (!cm->ep_attr)
		return aw_cm_fail(ENOMEM);
	*cm->ep_attr = *attr;
	cm->ep_attr->qp_type = cm->id.qp_type;
	return 0;
}

/* EINVAL where the connection data do not fit into an event of the peer. */
static int make_active(struct rdma_cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
		       struct ibv_qp_init_attr *attr)
{
	struct aw_cm_id *cm = aw_cm_id_of(id);

	if (rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, RESOLVE_MS) < 0 ||
	    rdma_resolve_route(id, RESOLVE_MS) < 0)
		return -1;
	if (res->ai_connect_len > AW_CM_PD_MAX)
		return aw_cm_fail(EINVAL);
	if (res->ai_connect_len) {
		cm->ep_data = malloc(res->ai_connect_len);
		if (!cm->ep_data)
			return aw_cm_fail(ENOMEM);
		memcpy(cm->ep_data, res->ai_connect, res->ai_connect_len);
		cm->ep_data_len = (uint8_t)res->ai_connect_len;
	}
	if (!attr)
		return 0;
	attr->qp_type = id->qp_type;
	return rdma_create_qp(id, pd, attr);
}

int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *qp_init_attr)
{
	struct rdma_cm_id *ep;

	if (!id || !res)
		return aw_cm_fail(EINVAL);
	/* Results that a program made itself may have no type. */
	enum rdma_port_space ps = (enum rdma_port_space)res->ai_port_space;
	enum ibv_qp_type qp_type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;

	if (ps == RDMA_PS_IB && res->ai_qp_type)
		qp_type = (enum ibv_qp_type)res->ai_qp_type;
	if (aw_cm_id_make(NULL, &ep, NULL, ps, qp_type) < 0)
		return -1;
	int ret = res->ai_flags & RAI_PASSIVE ? make_passive(ep, res, pd, qp_init_attr)
					      : make_active(ep, res, pd, qp_init_attr);

	if (ret == 0) {
		*id = ep;
		return 0;
	}
	int err = errno;

	rdma_destroy_ep(ep);
	return aw_cm_fail(err);
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (!id)
		return;
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	struct rdma_cm_event *event;

	if (!listen || !id || !aw_cm_id_of(listen)->sync)
		return aw_cm_fail(EINVAL);
	aw_cm_id_release_event(aw_cm_id_of(listen));
	if (rdma_get_cm_event(listen->channel, &event) < 0)
		return -1;
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		listen->event = event;
		return aw_cm_fail(event->status ? -event->status : EINVAL);
	}

	struct ibv_qp_init_attr *ep_attr = aw_cm_id_of(listen)->ep_attr;
	struct rdma_cm_id *made = event->id;

	if (ep_attr) {
		struct ibv_qp_init_attr attr = *ep_attr;

		/* A Request whose QP cannot be created is rejected. */
		if (rdma_create_qp(made, listen->pd, &attr) != 0) {
			int err = errno;

			rdma_ack_cm_event(event);
			rdma_destroy_id(made);
			return aw_cm_fail(err);
		}
	}
	made->event = event;
	*id = made;
	return 0;
}
