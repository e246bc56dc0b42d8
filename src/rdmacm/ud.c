// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rdma_connect, rdma_accept and rdma_reject in the UDP port space, and the QP of such an id. Events
// are those of Linux's rdma_cm: ESTABLISHED at the client, and none at the server.
#include "rdmacm/ud.h"

#include "rdmacm/qp_ref.h"
#include "rdmacm/stream.h"

#include "rdmacm/address.h"
#include "ring/lock.h"
#include "verbs/private.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

int aw_cm_ud_create(struct aw_cm_id *cm)
{
	cm->ud = calloc(1, sizeof(*cm->ud));
	if (!cm->ud)
		return ENOMEM;
	LIST_INIT(&cm->ud->groups);
	cm->id.ps = RDMA_PS_UDP;
	cm->id.qp_type = IBV_QPT_UD;
	return 0;
}

void aw_cm_ud_free(struct aw_cm_id *cm)
{
	struct aw_cm_group *group;

	if (!cm->ud)
		return;
	while ((group = LIST_FIRST(&cm->ud->groups))) {
		LIST_REMOVE(group, entry);
		free(group);
	}
	free(cm->ud);
}

/* Once the id has ended only its owner uses these fields. */
void aw_cm_ud_stop(struct aw_cm_id *cm)
{
	struct aw_cm_ud *ud = cm->ud;

	if (!ud)
		return;
	if (ud->service)
		aw_sidr_service_destroy(ud->service);
	if (ud->ask)
		aw_sidr_ask_destroy(ud->ask);
	if (ud->request) {
		aw_sidr_reply(ud->request, &(struct aw_sidr_answer){ .status = AW_SIDR_REJECTED });
		aw_sidr_request_free(ud->request);
	}
	ud->service = NULL;
	ud->ask = NULL;
	ud->request = NULL;
}

/* A request is left alone: a thread that only the parent has may hold its service's lock. */
void aw_cm_ud_drop_inherited(struct aw_cm_id *cm)
{
	if (cm->ud && cm->ud->service)
		aw_sidr_service_destroy(cm->ud->service);
	if (cm->ud && cm->ud->ask)
		aw_sidr_ask_destroy(cm->ud->ask);
}

int aw_cm_ud_source(const struct rdma_cm_id *id, struct ibv_gid_entry *entry)
{
	const struct rdma_addr *addr = &id->route.addr;
	/* The link of an address that means one alone; 0: any. */
	uint32_t link = addr->src_addr.sa_family == AF_INET6 ? addr->src_sin6.sin6_scope_id : 0;
	int err = 0;

	/* ENODATA: an entry that is not used, with others behind it. */
	for (uint32_t i = 0; !err || err == ENODATA; i++) {
		err = ibv_query_gid_ex(id->verbs, id->port_num, i, entry, 0);
		if (err || memcmp(&entry->gid, &addr->addr.ibaddr.sgid, sizeof(entry->gid)) != 0)
			continue;
		/* An entry whose interface could not be found may be on any link. */
		if (!link || !entry->ndev_ifindex || entry->ndev_ifindex == link)
			return 0;
	}
	return EADDRNOTAVAIL;
}

void aw_cm_ud_describe(struct aw_cm_event *ev, const union ibv_gid *to, uint32_t qpn, uint32_t qkey)
{
	struct rdma_ud_param *ud = &ev->event.param.ud;
	struct ibv_gid_entry source = { 0 };

	/*
	 * When the id's address is not in the GID table any more, an address handle from the event
	 * will be refused.
	 */
	if (aw_cm_ud_source(ev->event.id, &source) != 0)
		source.gid_index = UINT8_MAX;
	ud->ah_attr = (struct ibv_ah_attr){
		.grh = { .dgid = *to,
			 .sgid_index = (uint8_t)source.gid_index,
			 .hop_limit = AW_CM_HOP_LIMIT },
		.is_global = 1,
		.port_num = ev->event.id->port_num,
	};
	ud->qp_num = qpn;
	ud->qkey = qkey;
}

/* InfiniBand's status of a refusal is positive; that of a failure is an errno. */
static void answered(struct aw_cm_id *cm, const struct aw_sidr_answer *answer) AW_REQUIRES(cm->lock)
{
	enum rdma_cm_event_type type = answer->status ? RDMA_CM_EVENT_UNREACHABLE
						      : RDMA_CM_EVENT_ESTABLISHED;
	struct aw_cm_event *ev = aw_cm_event_create(cm, type, answer->status);

	aw_cm_id_enter(cm, answer->status ? AW_CM_FAILED : AW_CM_CONNECTED);
	if (!ev)
		return;
	aw_cm_ud_describe(ev, &cm->id.route.addr.addr.ibaddr.dgid, answer->qpn, answer->qkey);
	if (answer->pd_len > 0) {
		memcpy(ev->private_data, answer->pd, answer->pd_len);
		ev->event.param.ud.private_data = ev->private_data;
		ev->event.param.ud.private_data_len = answer->pd_len;
	}
	aw_cm_event_raise(ev);
}

static void on_answer(void *arg, int err, const struct aw_sidr_answer *answer)
{
	struct aw_cm_id *cm = aw_cm_id_get(arg);

	if (!cm)
		return;
	aw_lock(&cm->lock);
	if (cm->state == AW_CM_CONNECTING && !err) {
		answered(cm, answer);
	} else if (cm->state == AW_CM_CONNECTING) {
		aw_cm_id_enter(cm, AW_CM_FAILED);
		aw_cm_event_tell(cm, RDMA_CM_EVENT_UNREACHABLE, -err);
	}
	aw_unlock(&cm->lock);
	aw_cm_id_put(cm);
}

static int ask(struct aw_cm_id *cm, const struct rdma_conn_param *param)
{
	const struct sockaddr *to = &cm->id.route.addr.dst_addr;
	uint8_t pd[2 * AW_CM_PD_MAX];
	size_t pd_len = aw_cm_connect_data(cm, param, pd);
	int err = pd_len > AW_SIDR_PD_MAX ? EINVAL : aw_cm_id_hold_engine(cm);

	if (err)
		return err;
	if (cm->fd < 0)
		return EADDRINUSE;
	if (connect(cm->fd, to, aw_address_len(to->sa_family)) != 0)
		return errno;
	err = aw_sidr_ask(cm->fd, pd, (uint8_t)pd_len, on_answer, aw_cm_id_arg(cm), &cm->ud->ask);
	if (err)
		cm->ud->ask = NULL;
	else
		cm->fd = -1;
	return err;
}

int aw_cm_ud_connect(struct aw_cm_id *cm, const struct rdma_conn_param *param)
{
	if (!aw_cm_id_advance(cm, AW_CM_ROUTE_RESOLVED, AW_CM_CONNECTING))
		return EINVAL;
	int err = ask(cm, param);

	if (err)
		aw_cm_id_advance(cm, AW_CM_CONNECTING, AW_CM_ROUTE_RESOLVED);
	return err;
}

/* Answers the request of an id in REQUESTED, and moves the id on. EINVAL in any other state. */
static int answer_with(struct aw_cm_id *cm, enum aw_cm_state next,
		       const struct aw_sidr_answer *answer)
{
	struct aw_sidr_request *request = NULL;
	int err;

	aw_lock(&cm->lock);
	if (cm->state == AW_CM_REQUESTED) {
		request = cm->ud->request;
		cm->ud->request = NULL;
		aw_cm_id_enter(cm, next);
	}
	aw_unlock(&cm->lock);
	if (!request)
		return EINVAL;
	err = aw_sidr_reply(request, answer);
	aw_sidr_request_free(request);
	return err;
}

int aw_cm_ud_accept(struct aw_cm_id *cm, const struct rdma_conn_param *param)
{
	struct ibv_qp *qp = aw_cm_qp_get(cm);
	uint32_t qpn = qp ? qp->qp_num : param ? param->qp_num : 0;
	struct aw_sidr_answer answer = {
		.qpn = qpn,
		.qkey = RDMA_UDP_QKEY,
		.pd = param ? param->private_data : NULL,
		.pd_len = aw_cm_param_pd_len(param),
	};

	if (qp)
		aw_cm_qp_put(cm);
	if (!qpn)
		return EINVAL;
	return answer_with(cm, AW_CM_CONNECTED, &answer);
}

int aw_cm_ud_reject(struct aw_cm_id *cm, const void *pd, uint8_t pd_len)
{
	return answer_with(
		cm, AW_CM_FAILED,
		&(struct aw_sidr_answer){ .status = AW_SIDR_REJECTED, .pd = pd, .pd_len = pd_len });
}

/* As rdma-core's does: attaches the QP that the id has by now, and leaves it to the program when the id has none. */
void aw_cm_group_joined(struct aw_cm_event *ev)
{
	struct aw_cm_id *cm = ev->owner;
	struct aw_cm_group *group = ev->group;
	struct ibv_qp *qp = group->send_only ? NULL : aw_cm_qp_get(cm);

	if (!qp)
		return;
	int err = avb_attach_mcast(qp, &group->gid, group->ifindex);

	if (!err) {
		aw_lock(&cm->lock);
		group->member = qp;
		aw_unlock(&cm->lock);
	}
	aw_cm_qp_put(cm);
	if (!err)
		return;
	ev->event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
	ev->event.status = -err;
}

void aw_cm_group_acked(struct aw_cm_group *group)
{
	group->event_due = false;
}

int aw_cm_ud_qp_attr(const struct aw_cm_id *cm, struct ibv_qp_attr *attr, int *mask)
{
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		attr->pkey_index = 0;
		attr->port_num = cm->id.port_num;
		attr->qkey = RDMA_UDP_QKEY;
		*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
		return 0;
	case IBV_QPS_RTR:
		*mask = IBV_QP_STATE;
		return 0;
	case IBV_QPS_RTS:
		attr->sq_psn = 0;
		*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
		return 0;
	default:
		return EINVAL;
	}
}

int aw_cm_ud_qp_walk(const struct aw_cm_id *cm, struct ibv_qp *qp)
{
	static const enum ibv_qp_state way[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	int err = 0;

	for (size_t i = 0; i < sizeof(way) / sizeof(way[0]) && !err; i++) {
		struct ibv_qp_attr attr = { .qp_state = way[i] };
		int mask;

		err = aw_cm_ud_qp_attr(cm, &attr, &mask);
		if (!err)
			err = ibv_modify_qp(qp, &attr, mask);
	}
	return err;
}
