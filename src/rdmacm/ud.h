// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ids of the port space RDMA_PS_UDP: no connection, but a question that yields the peer's QP, and
// multicast groups. The same states as a connection's, as far as they go.
#ifndef RDMACM_UD_H
#define RDMACM_UD_H

#include "net/sidr.h"
#include "rdmacm/event.h"

#define AW_CM_QPN_MULTICAST 0xffffffu
#define AW_CM_HOP_LIMIT 64

struct aw_cm_group;

struct aw_cm_ud {
	/* guarded by the id's lock */
	struct aw_sidr_ask *ask; /* CONNECTING, and after */
	struct aw_sidr_request *request; /* REQUESTED */
	struct aw_sidr_service *service; /* LISTENING */
	LIST_HEAD(, aw_cm_group) groups;
};

/* Makes a fresh id one of this port space. 0 or ENOMEM. */
int aw_cm_ud_create(struct aw_cm_id *cm);

/* What these calls of the API do with such an id: 0 or an errno. */
int aw_cm_ud_connect(struct aw_cm_id *cm, const struct rdma_conn_param *param);
int aw_cm_ud_listen(struct aw_cm_id *cm);
int aw_cm_ud_accept(struct aw_cm_id *cm, const struct rdma_conn_param *param);
int aw_cm_ud_reject(struct aw_cm_id *cm, const void *pd, uint8_t pd_len);

/* The QP's attributes for the state in attr->qp_state. 0 or EINVAL. */
int aw_cm_ud_qp_attr(const struct aw_cm_id *cm, struct ibv_qp_attr *attr, int *mask);

/* All the way to RTS, where rdma_create_qp leaves a QP of this port space. 0 or an errno. */
int aw_cm_ud_qp_walk(const struct aw_cm_id *cm, struct ibv_qp *qp);

/* Ends what is under way: state AW_CM_ENDED was entered. free: later, when nobody finds the id. */
void aw_cm_ud_stop(struct aw_cm_id *cm);
/* In its place, in the child of a fork: nobody is told, since whoever asked is the parent's. */
void aw_cm_ud_drop_inherited(struct aw_cm_id *cm);
void aw_cm_ud_free(struct aw_cm_id *cm);

/* The id's own address in the GID table. 0, or EADDRNOTAVAIL. */
int aw_cm_ud_source(const struct rdma_cm_id *id, struct ibv_gid_entry *entry);

/* Whom to send to, for an event's param.ud. */
void aw_cm_ud_describe(struct aw_cm_event *ev, const union ibv_gid *to, uint32_t qpn,
		       uint32_t qkey);

/* rdmacm/multicast.c: the id's groups go; the lock is not held. */
void aw_cm_groups_drop(struct aw_cm_id *cm);

#endif
