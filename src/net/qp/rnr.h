// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP that has a message which waits for a receive (core/rnr_wait.h).
#ifndef NET_RNR_H
#define NET_RNR_H

#include "base/clock.h"
#include "net/qp/uqp.h"

/*
 * UC drops a message that finds no receive. But where bytes come by TCP a thread takes those of many messages at
 * once, faster than the program can post receives for them; an adapter meets that with the line's speed. So the first
 * of such messages has this time, in which TCP's window slows the peer down; until the program has posted another receive, all
 * later ones are dropped at once.
 */
#define AW_UC_RECEIVE_MS 250

/* On a new stream messages may wait. */
static inline void aw_rnr_begin(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (!qp->by_rc)
		qp->rnr_ms = AW_RNR_MS;
	if (qp->attr.uc)
		qp->rnr_ms = AW_UC_RECEIVE_MS;
	qp->rnr_told = false;
	aw_rnr_wait_begin(&qp->rnr_wait, &qp->core);
}

/* A stream that closes here may not: a receive posted now would be flushed. */
static inline void aw_rnr_end(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	aw_rnr_wait_end(&qp->core);
}

/* True while a message waits. */
static inline bool aw_rnr_waits(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return aw_rnr_wait_holds(&qp->core);
}

/*
 * True while nothing is read, because it could not be kept behind the message that waits (core/stash.h), or because the
 * peer has ended the stream: that end is found again once the message has its receive.
 */
static inline bool aw_rnr_stops_reading(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return aw_rnr_waits(qp) && (qp->core.rx_held || qp->peer_gone);
}

/* The time until the SRQ is looked at again. */
static inline uint32_t aw_rnr_retry_ms(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return aw_rnr_wait_retry_ms(&qp->rnr_wait, aw_now_ns());
}

/* Called before each try of the message that waits: when its time is over, this try is the last. */
static inline void aw_rnr_try(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	aw_rnr_wait_try(&qp->rnr_wait, &qp->core, qp->rnr_ms, aw_now_ns());
}

#endif
