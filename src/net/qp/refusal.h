// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Logs a peer's request for memory that this end has refused: the program of this end is given an event without a reason, and
// that of the peer a status; of UC neither is given anything.
#ifndef NET_REFUSAL_H
#define NET_REFUSAL_H

#include "net/qp/uqp.h"

/* Called when the QP's owners are about to be given events. Nothing where events is about something else. */
void aw_access_refusal_log(const struct aw_uqp *qp, uint32_t events) AW_REQUIRES(qp->lock);

/* Called after a turn: logs what UC has dropped, each time that this has doubled. */
void aw_drop_log(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* Called when a message of XRC is for an SRQ that the QP's domain does not have. */
void aw_srq_refusal_log(const struct aw_uqp *qp, uint32_t srqn) AW_REQUIRES(qp->lock);

#endif
