// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Inside the user-space QP: moving bytes.
//
// Every payload is copied into the batch, and the CRC is that of the copy, since the program, or a
// peer that may write there, can change a payload at any time; only without CRCs do large payloads
// of WRs stay in the program's memory. The rest of a batch that the socket does not take stays in
// the batch until poll(2) reports room, which TCP does once a third of the send buffer is free.
// Between two ends of one host the send buffer is bounded to what a cache holds. If memory for a
// stage is missing, the bytes wait in the socket, and the progress thread tries again every 10 ms.
#ifndef NET_UQP_IO_H
#define NET_UQP_IO_H

#include "net/qp/uqp.h"

/*
 * Sends the FPDUs that are due, until there are no more, the socket is full, or the budget is used
 * up.
 */
void aw_uqp_transmit(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/*
 * True when the program is not notified of an end of the stream that the peer or the network
 * causes: in the roce persona a QP learns of it by its own posts, as on InfiniBand, where a
 * connection is only the state of two QPs.
 */
static inline bool aw_uqp_ends_quietly(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return qp->by_rc && qp->core.state == AW_QP_RTS;
}

/*
 * Memory for a buffer is out: the bytes wait, and the progress thread tries again later, because
 * the socket stays ready and no event tells when there is memory. A stream that is ending does not
 * wait.
 */
void aw_uqp_starve(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/*
 * Reads what has come, all of it: a peer that ends behind its last message answers what comes to it then with a reset, which
 * a send finds before the message has been read.
 */
void aw_uqp_read_rest(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* Called when the connection was reset, or the peer has vanished. */
void aw_uqp_stream_lost(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/*
 * For carriers (net/qp/carrier.h): the peer has ended the stream. rest: bytes before its end that
 * the core has not used.
 */
void aw_uqp_peer_closed(struct aw_uqp *qp, size_t rest) AW_REQUIRES(qp->lock);

/* True when the core takes bytes now. */
bool aw_uqp_may_read(const struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* A stage to read into, behind the bytes that wait there; NULL: memory is out, which is noted. */
struct aw_stage *aw_uqp_take_stage(struct aw_uqp *qp) AW_REQUIRES(qp->lock);
void aw_uqp_leave_stage(struct aw_uqp *qp, struct aw_stage *stage) AW_REQUIRES(qp->lock);

/*
 * use: gives the stage's bytes to the core and moves the rest to the front. retry_held: tries again what waits for a
 * receive, and then the stage's bytes.
 */
void aw_uqp_use(struct aw_uqp *qp, struct aw_stage *stage) AW_REQUIRES(qp->lock);
void aw_uqp_retry_held(struct aw_uqp *qp, struct aw_stage *stage) AW_REQUIRES(qp->lock);

/* The functions that the core calls. */
extern const struct aw_ops aw_uqp_ops;

#endif
