// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP whose stream is held for a receive (core/rnr_wait.h).
#ifndef NET_RNR_H
#define NET_RNR_H

#include "base/clock.h"
#include "net/qp/uqp.h"

/* A new stream may be held. */
static inline void aw_rnr_begin(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (!qp->by_rc)
		qp->rnr_ms = AW_RNR_MS;
	aw_rnr_wait_begin(&qp->rnr_wait, &qp->core);
}

/* A stream that closes here may not: a receive posted now would be flushed. */
static inline void aw_rnr_end(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	qp->core.rnr_holds = false;
}

/* True while the stream is held: nothing is read from its socket. */
static inline bool aw_rnr_waits(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return aw_rnr_wait_holds(&qp->core);
}

/* The time until the SRQ is looked at again. */
static inline uint32_t aw_rnr_retry_ms(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return aw_rnr_wait_retry_ms(&qp->rnr_wait, aw_now_ns());
}

/* Called before each try of the held message: when its time is over, this try is the last. */
static inline void aw_rnr_try(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	aw_rnr_wait_try(&qp->rnr_wait, &qp->core, qp->rnr_ms, aw_now_ns());
}

#endif
