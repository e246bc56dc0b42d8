// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receiver not ready: a Send, or a Write with immediate data, finds no receive posted. iWARP has no
// RNR NAK, but a program written for InfiniBand counts on one. So the message waits for a while, and only after that
// time it is an error (RFC 5041 7.1). The messages behind it wait in TCP, whose window stops the peer; or, where
// both ends agreed on that, in a stash, and answers are taken (core/stash.h).
#ifndef CORE_RNR_WAIT_H
#define CORE_RNR_WAIT_H

#include "core/qp.h"

/* How long a program may take to post a receive, and how often its SRQ is looked at meanwhile. */
#define AW_RNR_MS 1000
#define AW_RNR_RETRY_MS 1
/* The interval after that time, where a QP may wait longer. */
#define AW_RNR_RETRY_LATE_MS 20

/* Since when the message waits that does. Each message has the whole time: its MSN tells it from others. */
struct aw_rnr_wait {
	uint64_t msn; /* UINT64_MAX: of none */
	uint64_t since_ns;
};

/* A new stream may be held. */
void aw_rnr_wait_begin(struct aw_rnr_wait *wait, struct aw_qp *qp);

/* True while a message waits. Where it is the driver that has it (qp->rx_held), nothing is read from the socket. */
static inline bool aw_rnr_wait_holds(const struct aw_qp *qp)
{
	return aw_qp_has_waiting(qp) && qp->rnr_holds && qp->state == AW_QP_RTS;
}

/*
 * Called before each try of the message that waits: when limit_ms is over, this try is the last. limit_ms 0: it waits for
 * ever.
 */
void aw_rnr_wait_try(struct aw_rnr_wait *wait, struct aw_qp *qp, uint32_t limit_ms,
		     uint64_t now_ns);

/* Called when a message has found its receive, perhaps in its last try: others may wait again. */
static inline void aw_rnr_wait_found(struct aw_qp *qp)
{
	qp->rnr_holds |= qp->rnr_over;
	qp->rnr_over = false;
}

/* Called when the stream ends: a receive posted now would be flushed. */
static inline void aw_rnr_wait_end(struct aw_qp *qp)
{
	qp->rnr_holds = qp->rnr_over = false;
}

/* The time until the next try, if no receive is posted before. */
uint32_t aw_rnr_wait_retry_ms(const struct aw_rnr_wait *wait, uint64_t now_ns);

#endif
