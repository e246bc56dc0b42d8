// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A UD QP: the same queues, CQs and number as any QP (net/uqp.h), but its own states, and datagrams
// in the place of a stream. One WR is one UDP datagram; it completes when the kernel took it. What
// arrives takes a receive or is dropped, and nobody hears of it. docs/roce-ud.md.
#ifndef NET_UD_H
#define NET_UD_H

#include "net/ud_ah.h"
#include "net/uqp.h"

/* As in ibv_qp_state, which this is shown as. */
enum aw_ud_state {
	AW_UD_RESET,
	AW_UD_INIT, /* receives may be posted */
	AW_UD_RTR, /* datagrams are received */
	AW_UD_RTS, /* and sent */
	AW_UD_SQD, /* posts wait */
	AW_UD_SQE, /* a send failed: later ones are flushed, receives go on */
	AW_UD_ERR,
};

struct aw_udsock;
struct aw_ud_group;

#define AW_UD_GROUPS 1024 /* multicast groups of a process */
#define AW_UD_GROUPS_OF_QP 64 /* that a QP may be attached to */

struct aw_ud {
	struct aw_udsock *sock; /* of its number; fixed after open */
	/* guarded by the QP lock */
	enum aw_ud_state state;
	uint32_t qkey;
	bool waits; /* for room in the socket */
	bool told_long, told_short, told_lost, told_key; /* the log knows */
	/* guarded by ud_group.c's lock */
	uint32_t group_count;
	struct aw_ud_group *groups[AW_UD_GROUPS_OF_QP];
};

/* A datagram that came, and for whom: net/udsock.c has read and parsed it. */
struct aw_ud_arrival {
	struct ud_hdr hdr;
	const struct ud_route *route;
	const uint8_t *body; /* UD_GRH_LEN octets about its way, then the payload */
	uint32_t len; /* octets of payload */
};

/*
 * For net/uqp.c. Memory, before the QP can be found and when nobody can find it any more (destroy: or
 * an RC QP); and its socket, while it has its number. 0, or an errno.
 */
int aw_ud_create(struct aw_uqp *qp);
void aw_ud_destroy(struct aw_uqp *qp);
int aw_ud_open(struct aw_uqp *qp);
void aw_ud_close(struct aw_uqp *qp);

/*
 * Posting. may_post: in this state there is a send queue. fill: what a WR says beyond an RC one.
 * commit, transmit: with the QP lock, in the place of what uqp.c does for a stream.
 */
bool aw_ud_may_post(const struct aw_uqp *qp);
void aw_ud_fill(const struct aw_uqp *qp, struct aw_swqe *wqe, struct aw_ah *ah, uint32_t remote_qpn,
		uint32_t qkey);
void aw_ud_commit(struct aw_uqp *qp);
void aw_ud_drop_handle(struct aw_swqe *wqe);
void aw_ud_transmit(struct aw_uqp *qp);

/* The socket has room again; no lock held. */
void aw_ud_on_room(struct aw_uqp *qp);

/* Moves the QP; which arrows there are is the caller's to know. No lock held. */
void aw_ud_move(struct aw_uqp *qp, enum aw_ud_state state);
enum aw_ud_state aw_ud_state(struct aw_uqp *qp);
void aw_ud_set_qkey(struct aw_uqp *qp, uint32_t qkey);

/* To ERR, with the QP lock held. */
void aw_ud_fail(struct aw_uqp *qp);

/* For net/udsock.c: what arrived, to a QP that it names. No QP lock held. */
void aw_ud_receive(struct aw_uqp *qp, const struct aw_ud_arrival *arrival);

/* For net/udsock.c, which knows the handles of its UD QPs: held until aw_uqp_put, or NULL. */
struct aw_uqp *aw_ud_get(uint32_t handle);

/* Around a fork. */
void aw_ud_fork_prepare(void);
void aw_ud_fork_done(void);

/* Datagrams with a wrong Q_Key, ever, in this process. */
uint32_t aw_ud_qkey_violations(void);

#endif
