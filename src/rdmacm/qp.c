// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The QP of an id.
#include "net/base/io_now.h"
#include "net/base/persona.h"
#include "rdmacm/cqs.h"
#include "rdmacm/devices.h"
#include "rdmacm/fail.h"
#include "rdmacm/qp_ref.h"
#include "rdmacm/stream.h"
#include "rdmacm/ud.h"
#include "ring/lock.h"
#include "verbs/newer.h"
#include "verbs/private.h"

#include <stddef.h>
#include <string.h>

#include <rdma/rdma_verbs.h>

#define TIMEOUT 14 /* 67 ms */
#define RETRIES 7

static int check_create(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (!id->verbs || aw_cm_qp_exists(aw_cm_id_of(id)))
		return EINVAL;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	if (attr->pd->context != id->verbs || attr->qp_type != id->qp_type)
		return EINVAL;
	if ((id->send_cq && attr->send_cq && id->send_cq != attr->send_cq) ||
	    (id->recv_cq && attr->recv_cq && id->recv_cq != attr->recv_cq))
		return EINVAL;
	if (attr->qp_type == IBV_QPT_XRC_RECV && !(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD)) {
		attr->xrcd = aw_cm_device_xrcd();
		if (!attr->xrcd)
			return errno;
		attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	}
	return 0;
}

static int create_cqs(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (id->srq && !attr->srq)
		attr->srq = id->srq;
	if (aw_cm_cqs_create(id, attr->send_cq || id->send_cq ? 0 : attr->cap.max_send_wr,
			     attr->recv_cq || id->recv_cq ? 0 : attr->cap.max_recv_wr) < 0)
		return errno;
	if (!attr->send_cq)
		attr->send_cq = id->send_cq;
	if (!attr->recv_cq)
		attr->recv_cq = id->recv_cq ? id->recv_cq : attr->send_cq;
	if (!attr->send_cq)
		attr->send_cq = attr->recv_cq;
	return attr->send_cq ? 0 : EINVAL;
}

/*
 * Moves a new QP to the state in which Linux's rdma_cm leaves it; an iWARP QP begins in that state.
 */
static int move_on(struct rdma_cm_id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	if (aw_cm_id_of(id)->ud)
		return aw_cm_ud_qp_walk(aw_cm_id_of(id), qp);
	if (!aw_persona_is_roce()) {
		avb_qp_state_sync(qp);
		return 0;
	}
	if (rdma_init_qp_attr(id, &attr, &mask) != 0)
		return errno;
	return ibv_modify_qp(qp, &attr, mask);
}

void aw_cm_qp_flush(struct aw_cm_id *cm)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp *qp = aw_cm_qp_get(cm);

	if (!qp)
		return;
	(void)ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	aw_cm_qp_put(cm);
}

/* A program that tries again, with less, does so with the attributes that it gave: without the CQs of the first try. */
int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	if (!id || !attr)
		return aw_cm_fail(EINVAL);
	struct ibv_cq *send_cq = attr->send_cq, *recv_cq = attr->recv_cq;
	int err = check_create(id, attr);

	if (!err)
		err = create_cqs(id, attr);
	if (err)
		return aw_cm_fail(err);
	struct ibv_qp *qp = ibv_create_qp_ex(id->verbs, attr);

	err = qp ? move_on(id, qp) : errno;
	if (err) {
		if (qp)
			ibv_destroy_qp(qp);
		aw_cm_cqs_destroy(id);
		attr->send_cq = send_cq;
		attr->recv_cq = recv_cq;
		return aw_cm_fail(err);
	}
	/* A target QP of XRC has none itself, but the program registers its memory by the id's. */
	id->pd = attr->pd;
	aw_cm_qp_set(aw_cm_id_of(id), qp);
	return 0;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct ibv_qp_init_attr_ex attr = { 0 };
	/* The short form ends in padding where the long one goes on with comp_mask. */
	const size_t common = offsetof(struct ibv_qp_init_attr_ex, comp_mask);

	if (!id || !qp_init_attr)
		return aw_cm_fail(EINVAL);
	memcpy(&attr, qp_init_attr, common);
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr.pd = pd;
	int ret = rdma_create_qp_ex(id, &attr);

	if (ret == 0)
		memcpy(qp_init_attr, &attr, common);
	return ret;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	if (!id)
		return;
	struct aw_cm_id *cm = aw_cm_id_of(id);
	struct ibv_qp *qp = NULL;

	if (aw_cm_id_inherited(cm)) {
		qp = aw_cm_qp_take_inherited(cm);
	} else if (aw_cm_qp_exists(cm)) {
		aw_cm_stream_release(cm);
		qp = aw_cm_qp_take(cm);
		if (qp && cm->ud)
			avb_leave_mcast(qp);
		/* The connection ends with its QP, which raises no more events, so the id's event is raised here. */
		aw_lock(&cm->lock);
		cm->uqp = NULL;
		cm->uqp_events |= AW_UQP_CLOSED | AW_UQP_DELIVERED;
		aw_cm_stream_settle(cm);
		aw_unlock(&cm->lock);
	}
	if (!qp)
		return;
	ibv_destroy_qp(qp);
	aw_cm_cqs_destroy(id);
}

/*
 * The attributes that ibv_modify_qp requires of a QP of the roce persona. The number 0 of the
 * peer's QP, which no QP has, means that rdma_cm makes the connection.
 */
static int init_rtr(const struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	attr->path_mtu = IBV_MTU_4096;
	attr->dest_qp_num = 0;
	attr->rq_psn = 0;
	attr->max_dest_rd_atomic = AW_RD_MAX;
	attr->min_rnr_timer = 0;
	attr->ah_attr = (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = id->port_num,
		.grh.dgid = id->route.addr.addr.ibaddr.dgid,
		.grh.hop_limit = AW_CM_HOP_LIMIT,
	};
	*mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return 0;
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	if (!id || !qp_attr || !qp_attr_mask || !id->verbs)
		return aw_cm_fail(EINVAL);
	if (aw_cm_id_of(id)->ud)
		return aw_cm_fail(aw_cm_ud_qp_attr(aw_cm_id_of(id), qp_attr, qp_attr_mask));
	if (aw_persona_is_roce() && qp_attr->qp_state == IBV_QPS_RTR)
		return init_rtr(id, qp_attr, qp_attr_mask);
	if (aw_persona_is_roce() && qp_attr->qp_state == IBV_QPS_RTS) {
		const struct aw_cm_id *cm = aw_cm_id_of(id);

		qp_attr->timeout = cm->ack_timeout_set ? cm->ack_timeout : TIMEOUT;
		qp_attr->retry_cnt = qp_attr->rnr_retry = RETRIES;
		qp_attr->sq_psn = 0;
		qp_attr->max_rd_atomic = AW_RD_MAX;
		*qp_attr_mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
		return 0;
	}
	if (qp_attr->qp_state == IBV_QPS_RTS) {
		*qp_attr_mask = 0;
		return 0;
	}
	if (qp_attr->qp_state != IBV_QPS_INIT && qp_attr->qp_state != IBV_QPS_RTR)
		return aw_cm_fail(EINVAL);
	qp_attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC | VB_ACCESS_FLUSH;
	qp_attr->port_num = id->port_num;
	qp_attr->pkey_index = 0;
	*qp_attr_mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT;
	if (aw_persona_is_roce())
		*qp_attr_mask |= IBV_QP_PKEY_INDEX;
	return 0;
}
