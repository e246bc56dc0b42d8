// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Connections of the roce persona's RC and UC QPs: a QP that the program moves by ibv_modify_qp gets a TCP
// connection with MPA to its peer QP. No function blocks, either end may be first, and one
// direction through a firewall is enough: both ends call, and the rules of net/roce/pair.h decide.
// The lock is taken before the QP's.
//
// The peer's leaving raises no event in this persona (aw_uqp_ends_quietly): the core stays in RTS
// without a socket until something is posted and the QP's time-out is over. A stream that ends
// before either program has sent a message on it (`touched`) is no loss, since the peer's QP may
// have been reset: the QP goes back to IDLE (aw_qp_recall) and waits for the next connection. So a
// QP reads what its socket has before its first message, local operations count as no use, and a
// conn that is accepted just as its QP is reset closes without a Terminate (plain_end of
// net/conn/conn.h).
//
// A QP of UC never notices that its peer is gone. A post without a connection waits for the first one
// since RTR, for as long as a post of RC does at the least, so that two programs that have just
// exchanged their numbers lose nothing. After that time, and after a stream that was used, posts count
// as sent and are dropped (posts_drop). Connecting goes on all the while: after the end of each stream
// the QP waits for another one.
#ifndef NET_RC_H
#define NET_RC_H

#include "net/conn/conn.h"
#include "net/roce/pair.h"

/* A failed call is repeated after 10, 20, 40 ... ms, up to this. */
#define AW_RC_AGAIN_MS 1000
/* A Request waits so long for its QP to be told of the peer; the peer calls again meanwhile. */
#define AW_RC_HELD_MS 15000
/* Requests of a QP that wait; beyond that the oldest is rejected. */
#define AW_RC_HELD_MAX 4

struct aw_rc;

/* The attributes of the move to RTR. */
struct aw_rc_told {
	struct aw_pair pair;
	uint16_t ird; /* inbound Reads and atomics at a time */
	bool by_lid; /* the path has no GRH: it leads to this host */
	bool at_rts; /* connecting begins with aw_rc_ready: an XRC initiator tells its target rnr_retry, which RTS has */
	uint32_t rnr_timer; /* of an XRC target, as below: it need not go to RTS */
};

/* The attributes of the move to RTS. */
struct aw_rc_ready {
	uint16_t ord; /* outbound Reads and atomics at a time */
	uint32_t retry_ms; /* how long a post may wait for a connection; 0: for ever */
	/* An inbound message waits for its receive for rnr_timer (10 us) as often; on an XRC target as often as its initiator says. */
	uint32_t rnr_timer;
	uint8_t rnr_retry; /* 0 to PAIR_RNR_RETRY_ENDLESS */
};

/* An RC or UC QP of the roce persona is created with this kind: qp->rc makes its connections. */
extern const struct aw_uqp_kind aw_rc_kind;

/*
 * RTR: takes the connection that waits, or begins one. 0, or EINVAL: in the child of a fork the
 * parent's QP cannot be connected.
 */
int aw_rc_tell(struct aw_rc *rc, const struct aw_rc_told *told);

/* RTS: posts are allowed, and wait for the connection. */
void aw_rc_ready(struct aw_rc *rc, const struct aw_rc_ready *ready);

/*
 * To RESET (over false) or ERR: the rc ends connecting until aw_rc_tell. Called before the QP's own
 * move.
 */
void aw_rc_stop(struct aw_rc *rc, bool over);

/* The values that every such connection is negotiated with. 0, or EINVAL: ANYWARP_MPA is wrong. */
int aw_rc_mpa_local(struct aw_mpa_local *local);

/* The event of a port's listener (net/roce/qpn.h): a Request for one of its QPs. */
void aw_rc_on_request(void *arg, struct aw_conn *conn, enum aw_conn_event event);

/* For net/roce/qpn.c, in the child of a fork: it holds no Request yet. */
void aw_rc_fork_child(void);

#endif
