// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The inside of net/roce/rc.h: rc.c has its life and its clock, rc_call.c the connections that it
// makes, rc_answer.c the Requests that come.
#ifndef NET_RC_IMPL_H
#define NET_RC_IMPL_H

#include "base/thread_safety.h"
#include "net/roce/rc.h"

struct aw_rc_held {
	struct aw_conn *conn; /* NULL: free */
	struct pair request;
	uint64_t until_ns;
};

struct aw_rc {
	struct aw_watch watch; /* must be first; it has a clock and no fd */
	/* fixed after create */
	struct aw_uqp *qp;
	uint32_t generation;

	aw_mutex lock; /* guards what follows */
	bool ended;
	enum aw_pair_phase phase; /* CALLING stands for ASKED as well, which the conn knows */
	struct aw_rc_told told;
	uint32_t incarnation;
	uint16_t ord;
	uint32_t rnr_timer;
	uint8_t rnr_retry; /* of an XRC target: its initiator's */
	struct aw_conn *call; /* a call that is not answered yet */
	uint32_t calls; /* calls that failed */
	bool met; /* has been connected since RTR */
	bool type_told; /* since RTR: that the peer is of another type was logged */
	uint64_t call_ns; /* when to call; 0: no call is due */
	struct aw_rc_held held[AW_RC_HELD_MAX];
};

/*
 * Conns that were taken out of an rc under its lock, to be destroyed without it, because their
 * events need the lock.
 */
struct aw_rc_litter {
	struct aw_conn *conns[AW_RC_HELD_MAX + 4];
	uint32_t count;
};

void aw_rc_drop(struct aw_rc_litter *litter, struct aw_conn *conn);
void aw_rc_sweep(struct aw_rc_litter *litter);

/* The negotiated depth is at least 1: the acknowledgements of core/ack.h need one. */
static inline uint16_t aw_rc_depth(uint16_t told)
{
	return told > 0 ? told : 1;
}

/* Logs that the QP of the peer is of another type, which the two programs have to mend. */
void aw_rc_log_type(struct aw_rc *rc) AW_REQUIRES(rc->lock);

/* Sets the clock to the earliest of what is due. */
void aw_rc_set_clock(struct aw_rc *rc) AW_REQUIRES(rc->lock) AW_EXCLUDES(rc->qp->lock);

/* Ends connecting when the QP has failed before it was connected. */
void aw_rc_look(struct aw_rc *rc, struct aw_rc_litter *litter) AW_REQUIRES(rc->lock);

enum aw_pair_phase aw_rc_phase(const struct aw_rc *rc) AW_REQUIRES(rc->lock);
struct pair aw_rc_pair(const struct aw_rc *rc, enum pair_answer answer) AW_REQUIRES(rc->lock);

/*
 * aw_rc_call begins a call, or connects a QP that is its own peer; aw_rc_call_later sets the time of
 * the next one.
 */
void aw_rc_call(struct aw_rc *rc) AW_REQUIRES(rc->lock);
void aw_rc_call_later(struct aw_rc *rc) AW_REQUIRES(rc->lock);
/* Gives up the running call, if any. */
void aw_rc_drop_call(struct aw_rc *rc, struct aw_rc_litter *litter) AW_REQUIRES(rc->lock);
/* Called before the QP gets a socket. peer: what the peer has said of itself. */
void aw_rc_agree(struct aw_rc *rc, const struct pair *peer) AW_REQUIRES(rc->lock)
	AW_EXCLUDES(rc->qp->lock);
/* Called when the QP has its socket. */
void aw_rc_joined(struct aw_rc *rc) AW_REQUIRES(rc->lock) AW_EXCLUDES(rc->qp->lock);

/*
 * Accepts the latest held Request of the QP's peer, and rejects those of other QPs. True when one
 * was accepted.
 */
bool aw_rc_answer_held(struct aw_rc *rc, struct aw_rc_litter *litter) AW_REQUIRES(rc->lock);
/* Rejects the peer's held Requests up to that incarnation. */
void aw_rc_drop_held_until(struct aw_rc *rc, uint32_t incarnation, struct aw_rc_litter *litter)
	AW_REQUIRES(rc->lock);
/* Rejects held Requests that have waited too long; drops all of them. */
void aw_rc_expire_held(struct aw_rc *rc, uint64_t now_ns, struct aw_rc_litter *litter)
	AW_REQUIRES(rc->lock);
void aw_rc_drop_held(struct aw_rc *rc, struct aw_rc_litter *litter) AW_REQUIRES(rc->lock);

#endif
