// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// QPs of the roce persona that a test walks from RESET to RTS itself.
#ifndef TESTS_VERBS_WALK_H
#define TESTS_VERBS_WALK_H

#include "fixture.h"

enum {
	WALK_MEMORY = 4096,
	WALK_RD = 4, /* Reads at once, both ways */
};

/* One QP with CQs and memory of its own. */
struct walker {
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	uint8_t *memory; /* WALK_MEMORY octets, all zero */
	struct ibv_mr *mr; /* of memory, with all rights */
};

/* How a peer is reached: by a GID of the table, or (gid_index < 0) without one, by the LID. */
struct route {
	int gid_index;
	union ibv_gid gid;
};

/* cmocka set-up: the same as fixture_setup in the roce persona. For a program whose main calls
 * walk_persona first: the environment is read once. */
void walk_persona(void);

struct route route_by_lid(void);
/* By the table's entry for this address, as in ::ffff:127.0.0.1; fails when there is none. */
struct route route_by(struct fixture *f, const char *address);
struct route route_loopback(struct fixture *f);

/* make: an RC QP. make_type: of this type, and with this SRQ, or NULL. */
void walker_make(struct walker *w, struct fixture *f);
void walker_make_type(struct walker *w, struct fixture *f, enum ibv_qp_type type,
		      struct ibv_srq *srq);
void walker_destroy(struct walker *w);

/* The attributes and the mask of each step, as a program that knows its peer's QPN would give them. */
struct ibv_qp_attr walk_attr_init(void);
struct ibv_qp_attr walk_attr_rtr(const struct route *route, uint32_t qpn);
struct ibv_qp_attr walk_attr_rts(void);
#define WALK_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define WALK_RTR                                                                        \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define WALK_RTS                                                                               \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
	 IBV_QP_MAX_QP_RD_ATOMIC)
/* Of a UC QP. */
#define WALK_UC_RTR (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define WALK_UC_RTS (IBV_QP_STATE | IBV_QP_SQ_PSN)

void walk_init(struct walker *w);
void walk_rtr(struct walker *w, const struct route *route, uint32_t qpn);
void walk_rts(struct walker *w);
/* All of it, from RESET. */
void walk(struct walker *w, const struct route *route, uint32_t qpn);
void walk_reset(struct walker *w);

void walker_recv(struct walker *w, uint64_t wr_id);
/* A signalled WR over the first len octets; write and read: from or to those of peer. */
void walker_post(struct walker *w, enum ibv_wr_opcode opcode, uint32_t len,
		 const struct walker *peer);
/* The next completion, which must have this status. */
struct ibv_wc walker_sent(struct walker *w, enum ibv_wc_status status);
struct ibv_wc walker_received(struct walker *w, enum ibv_wc_status status);
/* Nothing has been received so far, and the QP is in RTS. */
void walker_hears_nothing(struct walker *w);

/* A message from one to the other arrives, with what it carries. */
void walker_talk(struct walker *from, struct walker *to);

/* Two that are each other's peers. */
struct two {
	struct walker a, b;
};

void two_make(struct two *t, struct fixture *f);
void two_make_uc(struct two *t, struct fixture *f); /* of UC */
void two_destroy(struct two *t);
/* Both from RESET. */
void two_walk(struct two *t, const struct route *route);
/* A message each way. */
void two_talk(struct two *t);
/* All of it, by the loopback address. */
void two_connect(struct two *t, struct fixture *f);
void two_connect_uc(struct two *t, struct fixture *f);

#endif
