// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RC connections of the roce persona: what ibv_modify_qp says of a QP becomes a TCP connection with MPA
// between two QPs. It never blocks, either end may be first, and one way through a firewall is enough:
// both ends call, and the rules of net/pair.h decide. The lock comes before the QP's.
#ifndef NET_RC_H
#define NET_RC_H

#include "net/conn.h"
#include "net/pair.h"

/* The end that is not to call (aw_pair_is_caller) calls all the same when nobody came for so long. */
#define AW_RC_YIELD_MS 100
/* A call in vain is repeated after 10, 20, 40 ... ms, up to this. */
#define AW_RC_AGAIN_MS 1000
/* A Request waits so long for its QP to be told of the peer, who asks again meanwhile. */
#define AW_RC_HELD_MS 15000
/* Requests of a QP that wait; then the oldest is rejected. */
#define AW_RC_HELD_MAX 4
/*
 * The time that a post waits for a connection that never stood, whatever the QP's timeout says: that one is
 * of an adapter, which needs no TCP handshake and no other process to be scheduled.
 */
#define AW_RC_PATIENCE_MS 5000

struct aw_rc;

/* What the move to RTR says. */
struct aw_rc_told {
	struct aw_pair pair;
	uint16_t ird; /* inbound Reads and atomics at once */
};

/* What the move to RTS says. */
struct aw_rc_ready {
	uint16_t ord; /* Reads and atomics of ours at once */
	uint32_t retry_ms; /* how long a post may go unanswered; 0: for ever */
	uint32_t rnr_ms; /* how long a message waits here for a receive; 0: for ever */
};

/* 0, ENOMEM, or what aw_watch_add says. */
int aw_rc_create(struct aw_uqp *qp, struct aw_rc **rc);
/* It connects no more; waits for its events: with no lock held. */
void aw_rc_end(struct aw_rc *rc);
/* Then, when nobody can find the QP any more. */
void aw_rc_destroy(struct aw_rc *rc);

/*
 * RTR: takes the connection that waits, or begins one. 0, or EINVAL: in the child of a fork the parent's QP
 * can be reached by nobody.
 */
int aw_rc_tell(struct aw_rc *rc, const struct aw_rc_told *told);

/* RTS: posts are allowed, and wait for the connection. */
void aw_rc_ready(struct aw_rc *rc, const struct aw_rc_ready *ready);

/* To RESET (over false) or ERR: it connects no more until it is told again. Before the QP's own move. */
void aw_rc_stop(struct aw_rc *rc, bool over);

/* For net/uqp_sock.c, with the QP's lock: it may have lost its stream, or post without one. */
void aw_rc_follow(struct aw_uqp *qp);

/* What every such connection is negotiated against. 0, or EINVAL: ANYWARP_MPA is wrong. */
int aw_rc_mpa_local(struct aw_mpa_local *local);

/* The event of a port's listener (net/qpn.h): a Request for one of its QPs. */
void aw_rc_on_request(void *arg, struct aw_conn *conn, enum aw_conn_event event);

/* For net/uqp.c, in the child of a fork that does not carry: it holds no Request yet. */
void aw_rc_fork_child(void);

#endif
