// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completions that say what they say on InfiniBand: the peer has processed the Write or Send, not only that
// TCP took it. RDMAP has no acknowledgement; but a peer answers a Read Request after all that came before
// it. So Reads and atomics of the program's acknowledge, and where there are none a Read of no octets does:
// one at a time, behind what is due, for all that went out before.
#ifndef CORE_ACK_H
#define CORE_ACK_H

#include "core/qp.h"

/* The position that a WR's last octet must have come to before it completes. */
uint64_t aw_ack_reached(const struct aw_qp *qp, const struct aw_swqe *wqe);

/* The WR went out as a whole, up to tx_pos. */
void aw_ack_passed(struct aw_qp *qp, const struct aw_swqe *wqe);

/* Where completions wait for it (qp->acks): whether a request of its own is to go out. */
bool aw_ack_is_due(const struct aw_qp *qp);

/*
 * The WR at the SQ's next is about to fail, which ends the stream: whether that must wait until those before it
 * are known to be there. Then their acknowledgement is asked for.
 */
bool aw_ack_is_awaited(struct aw_qp *qp);

/* The peer says that it has processed all before this position. */
void aw_ack_reach(struct aw_qp *qp, uint64_t pos);

/* The oldest request was answered. */
void aw_ack_answered(struct aw_qp *qp, const struct aw_orq_entry *entry);

#endif
