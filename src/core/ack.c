// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The WRs that wait to be acknowledged, and the requests for it.
#include "core/ack.h"

#include "core/reads.h"

/*
 * While a message of the peer waits for a receive and cannot be kept (core/stash.h), no answer behind it is read; and the
 * program may post that receive only once its own Send is complete. So in that time WRs complete once TCP has taken them.
 */
uint64_t aw_ack_reached(const struct aw_qp *qp, const struct aw_swqe *wqe)
{
	return qp->acks && !qp->rx_held && aw_op_is_one_way(wqe->op) ? qp->acked_pos : qp->sent_pos;
}

static bool is_wanted(const struct aw_qp *qp, const struct aw_swqe *wqe)
{
	bool signaled = qp->sig_all || qp->tells_each || (wqe->flags & AW_WR_SIGNALED);

	/* An unsignalled WR still needs its slot back in time; a queue that halts is drained without another post. */
	return signaled || qp->sq_halts || aw_sq_count(&qp->sq) > qp->sq.capacity / 2;
}

void aw_ack_passed(struct aw_qp *qp, const struct aw_swqe *wqe)
{
	if (qp->acks && aw_op_is_one_way(wqe->op) && is_wanted(qp, wqe))
		qp->need_pos = qp->tx_pos;
}

void aw_ack_local(struct aw_qp *qp, const struct aw_swqe *wqe)
{
	if (qp->acks && is_wanted(qp, wqe))
		(void)aw_ack_is_awaited(qp);
}

bool aw_ack_is_due(const struct aw_qp *qp)
{
	return !qp->ack_asked && qp->need_pos > qp->asked_pos && !aw_orq_is_full(qp) &&
	       !qp->peer_closed;
}

/* The end of the last Write or Send that went out. A request is acknowledged by its own answer. */
static uint64_t one_way_end(const struct aw_qp *qp)
{
	for (uint32_t i = qp->sq.next; i != qp->sq.head; i--) {
		const struct aw_swqe *wqe = aw_sq_at(&qp->sq, i - 1);

		if (aw_op_is_one_way((enum aw_op)wqe->op))
			return wqe->end_pos;
	}
	return 0;
}

bool aw_ack_is_awaited(struct aw_qp *qp)
{
	uint64_t end = one_way_end(qp);

	if (!qp->acks || qp->sq.head == qp->sq.next || qp->rx_held || qp->peer_closed)
		return false;
	if (end > qp->need_pos)
		qp->need_pos = end;
	return true;
}

/* The peer cannot have processed octets that TCP has not taken yet. */
void aw_ack_reach(struct aw_qp *qp, uint64_t pos)
{
	if (pos > qp->sent_pos)
		pos = qp->sent_pos;
	if (pos > qp->acked_pos)
		qp->acked_pos = pos;
}

void aw_ack_answered(struct aw_qp *qp, const struct aw_orq_entry *entry)
{
	aw_ack_reach(qp, entry->ack_pos);
	if (entry->rtr)
		qp->ack_asked = false;
}
