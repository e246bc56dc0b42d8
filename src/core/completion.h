// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completions: each WR exactly one (or none, when unsignalled and good), in its queue's order.
#ifndef CORE_COMPLETION_H
#define CORE_COMPLETION_H

#include "core/qp.h"

/* Completes the WRs at the head of the SQ that are over; the first is done. */
void aw_completion_retire_done(struct aw_qp *qp);

/* Likewise, where there may be none: a message makes several of these calls. */
static inline void aw_completion_retire(struct aw_qp *qp)
{
	if (aw_sq_count(&qp->sq) > 0 && aw_sq_at(&qp->sq, qp->sq.head)->done)
		aw_completion_retire_done(qp);
}

/* Completes every WR of the SQ, the half-received receive, and the RQ. */
void aw_completion_flush(struct aw_qp *qp);

/* In TERMINATE: flushes as soon as the driver holds no more octets of the program's memory. */
void aw_completion_flush_unlent(struct aw_qp *qp);

/* Completes the receive that a Send was placed in, and makes room for the next Send. */
void aw_completion_receive(struct aw_qp *qp, struct aw_cqe *cqe);

/* Takes all receives of the QP's own RQ and flushes them. */
void aw_completion_flush_rq(struct aw_qp *qp);

#endif
