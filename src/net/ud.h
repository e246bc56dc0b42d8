// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A UD QP: it has the queues, CQs and number of any QP (net/uqp.h), but its own states, and
// datagrams in place of a stream. One WR is one UDP datagram; it completes when the kernel has
// taken it. An arriving datagram takes a receive or is dropped without notice. docs/roce-ud.md.
#ifndef NET_UD_H
#define NET_UD_H

#include "net/ud_ah.h"
#include "net/uqp.h"

/* As in ibv_qp_state, which the program sees. */
enum aw_ud_state {
	AW_UD_RESET,
	AW_UD_INIT, /* receives may be posted */
	AW_UD_RTR, /* datagrams are received */
	AW_UD_RTS, /* datagrams are received and sent */
	AW_UD_SQD, /* posts wait */
	AW_UD_SQE, /* a send failed: later ones are flushed, receives go on */
	AW_UD_ERR,
};

struct aw_udsock;
struct aw_ud_group;

#define AW_UD_GROUPS 1024 /* multicast groups of a process */
#define AW_UD_GROUPS_OF_QP 64 /* groups that a QP may be attached to */

struct aw_ud {
	struct aw_udsock *sock; /* the socket of its number; fixed after open */
	/* guarded by the QP lock */
	enum aw_ud_state state;
	uint32_t qkey;
	bool waits; /* waits for room in the socket */
	bool told_long, told_short, told_lost, told_key; /* logged already */
	/* guarded by ud_group.c's lock */
	uint32_t group_count;
	struct aw_ud_group *groups[AW_UD_GROUPS_OF_QP];
};

/* A datagram that has come for a QP: net/udsock.c has read and parsed it. */
struct aw_ud_arrival {
	struct ud_hdr hdr;
	const struct ud_route *route;
	const uint8_t *body; /* UD_GRH_LEN bytes that describe its route, then the payload */
	uint32_t len; /* bytes of payload */
};

/*
 * For net/uqp.c. create: the memory, before the QP can be found. destroy: when no thread can find
 * it any more; does nothing for an RC QP. open, close: the QP's socket, while it has its number. 0,
 * or an errno.
 */
int aw_ud_create(struct aw_uqp *qp);
void aw_ud_destroy(struct aw_uqp *qp);
int aw_ud_open(struct aw_uqp *qp);
void aw_ud_close(struct aw_uqp *qp);

/*
 * Posting. may_post: this state has a send queue. fill: the parts of a WR that an RC one does not
 * have. commit, transmit: with the QP lock, in place of uqp.c's functions for a stream.
 */
bool aw_ud_may_post(const struct aw_uqp *qp);
void aw_ud_fill(const struct aw_uqp *qp, struct aw_swqe *wqe, struct aw_ah *ah, uint32_t remote_qpn,
		uint32_t qkey);
void aw_ud_commit(struct aw_uqp *qp);
void aw_ud_drop_handle(struct aw_swqe *wqe);
void aw_ud_transmit(struct aw_uqp *qp);

/* Called when the socket has room again, with no lock held. */
void aw_ud_on_room(struct aw_uqp *qp);

/* Moves the QP; the caller checks that the move is allowed. No lock held. */
void aw_ud_move(struct aw_uqp *qp, enum aw_ud_state state);
enum aw_ud_state aw_ud_state(struct aw_uqp *qp);
void aw_ud_set_qkey(struct aw_uqp *qp, uint32_t qkey);

/* Moves the QP to ERR, with the QP lock held. */
void aw_ud_fail(struct aw_uqp *qp);

/* For net/udsock.c: a datagram has come for qp. No QP lock held. */
void aw_ud_receive(struct aw_uqp *qp, const struct aw_ud_arrival *arrival);

/*
 * For net/udsock.c, which knows the handles of its UD QPs. The QP is held until aw_uqp_put; NULL:
 * there is none.
 */
struct aw_uqp *aw_ud_get(uint32_t handle);

/* Around a fork. */
void aw_ud_fork_prepare(void);
void aw_ud_fork_done(void);

/* Datagrams with a wrong Q_Key that this process has received. */
uint32_t aw_ud_qkey_violations(void);

#endif
