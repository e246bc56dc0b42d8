// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Inside the user-space QP: moving octets. Callers hold the QP lock.
#ifndef NET_UQP_IO_H
#define NET_UQP_IO_H

#include "net/uqp.h"

/* Sends what the core has due, until nothing is, or the socket is full, or the budget is used. */
void aw_uqp_transmit(struct aw_uqp *qp);

/*
 * Whether the end of the stream that the peer or the network brings about is not told: in the roce persona
 * a QP learns of it by what it posts, as on InfiniBand, where a connection is no more than two QPs' states.
 */
static inline bool aw_uqp_ends_quietly(const struct aw_uqp *qp)
{
	return qp->by_rc && qp->core.state == AW_QP_RTS;
}

/*
 * No buffer for its octets: they wait, and the progress thread tries again in a while, since the
 * socket stays ready and nothing tells when memory is there. A stream that is ending does not wait.
 */
void aw_uqp_starve(struct aw_uqp *qp);

/* The connection was reset, or the peer is gone without a word. */
void aw_uqp_stream_lost(struct aw_uqp *qp);

/* For carriers (net/carrier.h). The peer's end was found behind all but so many octets. */
void aw_uqp_peer_closed(struct aw_uqp *qp, size_t rest);

/* Whether the core takes octets now. */
bool aw_uqp_may_read(const struct aw_uqp *qp);

/* A stage to read into, behind what waits there; NULL: without memory, which is noted. */
struct aw_stage *aw_uqp_take_stage(struct aw_uqp *qp);
void aw_uqp_leave_stage(struct aw_uqp *qp, struct aw_stage *stage);

/* Gives the stage's octets to the core and moves the rest to the front; those that wait for a receive, once more. */
void aw_uqp_use(struct aw_uqp *qp, struct aw_stage *stage);
void aw_uqp_retry_held(struct aw_uqp *qp, struct aw_stage *stage);

/* What the core calls. */
extern const struct aw_ops aw_uqp_ops;

#endif
