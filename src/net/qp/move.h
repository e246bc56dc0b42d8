// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A stream's move from TCP into memory that it shares with its peer on the same host
// (docs/host-path.md). Every stream begins over TCP. The responder makes the memory once the stream
// has carried so much that this pays, and names it in a hello; the initiator opens it and answers
// with its verdict. Each end marks its last FPDU over TCP, behind which its bytes are in the memory.
#ifndef NET_MOVE_H
#define NET_MOVE_H

#include "core/machine.h"
#include "core/tx.h"
#include "net/qp/uqp.h"

/* The stream begins. */
void aw_move_begin(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* Called when bytes have gone over TCP, in a call of their own. */
void aw_move_count(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* True when the core has received a message of the move; acts on it. */
bool aw_move_take(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* True when aw_move_fill has something to add. */
static inline bool aw_move_is_due(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	/* RFC 5044 7.1.2 rule 4: a responder sends nothing before a valid FPDU has come. */
	return qp->move.due.kind != MOVE_MSG_NONE &&
	       (qp->core.stream.initiator || qp->core.peer_ready) && aw_machine_runs(&qp->core) &&
	       !qp->ending.fin_sent;
}

/* Adds the message that is due to an empty batch. True when nothing may follow it there. */
bool aw_move_fill(struct aw_uqp *qp, struct aw_tx_out *out) AW_REQUIRES(qp->lock);

/* Called when all of a batch went out. */
void aw_move_sent(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* True while a graceful end waits for the move, without which the peer would miss the end's place. */
bool aw_move_holds_end(const struct aw_uqp *qp) AW_REQUIRES(qp->lock);

#endif
