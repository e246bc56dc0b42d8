// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Ids of the port space RDMA_PS_UDP: no connection, but a SIDR request that yields the peer's QP,
// and multicast groups. They use some of a connection's states.
#ifndef RDMACM_UD_H
#define RDMACM_UD_H

#include "net/ud/sidr.h"
#include "rdmacm/event.h"

#define AW_CM_QPN_MULTICAST 0xffffffu
#define AW_CM_HOP_LIMIT 64

struct aw_cm_group {
	LIST_ENTRY(aw_cm_group) entry; /* guarded by the id's lock, as are member and event_due */
	union ibv_gid gid;
	uint32_t ifindex;
	bool send_only;
	struct ibv_qp *
		member; /* the QP that the library has attached. Compared, never used: it may be gone */
	bool event_due; /* its MULTICAST_JOIN waits for the program, or for the acknowledgement */
};

struct aw_cm_ud {
	/* guarded by the id's lock */
	struct aw_sidr_ask *ask; /* CONNECTING, and after */
	struct aw_sidr_request *request; /* REQUESTED */
	struct aw_sidr_service *service; /* LISTENING */
	LIST_HEAD(, aw_cm_group) groups;
};

/* Makes a fresh id one of this port space. 0 or ENOMEM. */
int aw_cm_ud_create(struct aw_cm_id *cm);

/* The calls of the API for such an id. 0 or an errno. */
int aw_cm_ud_connect(struct aw_cm_id *cm, const struct rdma_conn_param *param);
int aw_cm_ud_listen(struct aw_cm_id *cm);
int aw_cm_ud_accept(struct aw_cm_id *cm, const struct rdma_conn_param *param);
int aw_cm_ud_reject(struct aw_cm_id *cm, const void *pd, uint8_t pd_len);

/* Fills in the QP's attributes for the state in attr->qp_state. 0 or EINVAL. */
int aw_cm_ud_qp_attr(const struct aw_cm_id *cm, struct ibv_qp_attr *attr, int *mask);

/* Moves the QP to RTS, where rdma_create_qp leaves a QP of this port space. 0 or an errno. */
int aw_cm_ud_qp_walk(const struct aw_cm_id *cm, struct ibv_qp *qp);

/*
 * stop: ends what is under way, after AW_CM_ENDED was entered. free: later, when no thread finds
 * the id.
 */
void aw_cm_ud_stop(struct aw_cm_id *cm);
/*
 * Called in place of stop in the child of a fork: sends no reply, because the client is the
 * parent's.
 */
void aw_cm_ud_drop_inherited(struct aw_cm_id *cm);
void aw_cm_ud_free(struct aw_cm_id *cm);

/* Finds the id's own address in the GID table. 0, or EADDRNOTAVAIL. */
int aw_cm_ud_source(const struct rdma_cm_id *id, struct ibv_gid_entry *entry);

/* Fills in the destination for an event's param.ud. */
void aw_cm_ud_describe(struct aw_cm_event *ev, const union ibv_gid *to, uint32_t qpn,
		       uint32_t qkey);

/*
 * Called when the program takes MULTICAST_JOIN, without the lock: attaches the id's QP. Where that fails, the event becomes
 * MULTICAST_ERROR.
 */
void aw_cm_group_joined(struct aw_cm_event *ev);

/* The program has acknowledged the group's MULTICAST_JOIN. The caller holds the id's lock. */
void aw_cm_group_acked(struct aw_cm_group *group);

#endif
