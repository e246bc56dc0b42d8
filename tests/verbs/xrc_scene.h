// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two QPs of XRC and the SRQs behind them, in one process.
#ifndef TESTS_VERBS_XRC_SCENE_H
#define TESTS_VERBS_XRC_SCENE_H

#include "walk.h"

enum {
	XRC_SRQS = 2,
	XRC_MEMORY = 1 << 20,
	XRC_FAR = 2048, /* where the initiator writes to and reads from */
};

struct xrc {
	struct fixture *f;
	int fd; /* a file without a name */
	struct ibv_xrcd *xrcd; /* of fd */
	struct ibv_cq *send_cq;
	struct ibv_cq *cq[XRC_SRQS];
	struct ibv_srq *srq[XRC_SRQS];
	uint32_t srqn[XRC_SRQS];
	struct ibv_qp *initiator; /* made for the ibv_wr_* calls */
	struct ibv_qp *target;
	uint8_t *memory; /* XRC_MEMORY octets, all zero */
	struct ibv_mr *mr; /* of memory, with all rights */
	uint32_t rkey; /* that WRs name: mr's */
};

#define XRC_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define XRC_RTR_INITIATOR \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define XRC_RTR_TARGET (XRC_RTR_INITIATOR | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define XRC_RTS_INITIATOR                                                                      \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
	 IBV_QP_MAX_QP_RD_ATOMIC)
#define XRC_RTS_TARGET (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_SQ_PSN)

/* A file of its own. xrcd_open: NULL with errno. */
int xrc_file(void);
struct ibv_xrcd *xrcd_open(struct ibv_context *context, int fd, int oflags);

struct ibv_srq *xrc_srq_make(struct fixture *f, struct ibv_xrcd *xrcd, struct ibv_cq *cq);
uint32_t xrc_srq_number(struct ibv_srq *srq);
struct ibv_qp *xrc_target_make(struct ibv_context *context, struct ibv_xrcd *xrcd);
struct ibv_qp *xrc_initiator_make(struct fixture *f, struct ibv_cq *cq);

/*
 * All of it, in RESET; connected, with an endless rnr_retry or that one, where the target need not go to RTS; destroyed, where
 * members that are NULL were destroyed before.
 */
void xrc_make(struct xrc *x, struct fixture *f);
void xrc_connect(struct xrc *x);
void xrc_connect_rnr(struct xrc *x, uint8_t rnr_retry, bool target_to_rts);
void xrc_destroy(struct xrc *x);

/* A receive of 512 octets at memory + 512 * wr_id. */
void xrc_recv(struct xrc *x, int srq, uint64_t wr_id);
/* A signalled WR over the first len octets, for the SRQ with that number; Writes, Reads and atomics: at XRC_FAR. */
void xrc_post(struct xrc *x, enum ibv_wr_opcode opcode, uint32_t len, uint32_t srqn);

/* The next completion: of the initiator; at the CQ of an SRQ, from the initiator by the target. */
struct ibv_wc xrc_sent(struct xrc *x, enum ibv_wc_status status);
struct ibv_wc xrc_received(struct xrc *x, int srq, uint64_t wr_id);
/* A Send of one octet more than the last one arrives by that SRQ. */
void xrc_talk(struct xrc *x, int srq);
/* Reads and acknowledges the next events of the QP, in any order. */
void xrc_events(struct ibv_context *context, struct ibv_qp *qp, enum ibv_event_type a,
		enum ibv_event_type b);

#endif
