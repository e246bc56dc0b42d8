// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completions that mean what they mean on InfiniBand: the peer has processed the Write or Send, not
// only has TCP taken it. RDMAP has no acknowledgement; but a peer answers a Read Request after all
// that came before it. So the program's own Reads and atomics acknowledge, and where there are none
// a Read of no octets does: one at a time, behind what is due, for all that went out before.
#ifndef CORE_ACK_H
#define CORE_ACK_H

#include "core/qp.h"

/*
 * The position up to which octets count as delivered for this WR, which completes when that is its
 * end.
 */
uint64_t aw_ack_reached(const struct aw_qp *qp, const struct aw_swqe *wqe);

/* Called when the WR went out as a whole, up to tx_pos. */
void aw_ack_passed(struct aw_qp *qp, const struct aw_swqe *wqe);

/* Called when a local operation was executed, which completes behind what went out before it. */
void aw_ack_local(struct aw_qp *qp, const struct aw_swqe *wqe);

/* True when a Read of no octets is due, because completions wait for it (qp->acks). */
bool aw_ack_is_due(const struct aw_qp *qp);

/*
 * Called when the WR at the SQ's next is about to fail, which ends the stream: true when that must
 * wait until the WRs before it are acknowledged. Their acknowledgement is then requested. Also called for that alone, when the
 * queue is to drain.
 */
bool aw_ack_is_awaited(struct aw_qp *qp);

/* Called when the peer is known to have processed all before this position. */
void aw_ack_reach(struct aw_qp *qp, uint64_t pos);

/* Called when the oldest request was answered. */
void aw_ack_answered(struct aw_qp *qp, const struct aw_orq_entry *entry);

#endif
