// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The row of a QP in the statistics.
#ifndef NET_STAT_QP_H
#define NET_STAT_QP_H

#include "net/qp/uqp.h"

/* Takes the row. */
void aw_stat_begin_qp(struct aw_uqp *qp) AW_EXCLUDES(qp->lock);

/* Called when the core was initialized: it counts in the row from here on. */
void aw_stat_init(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* Writes the state of the QP, and what it waits for. */
void aw_stat_write_qp(const struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/*
 * Called before the QP lock is released: writes the numbers of WRs that are posted. A UD QP changes its state anywhere.
 */
static inline void aw_stat_unlock(const struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (!qp->stat)
		return;
	aw_stat_set64(&qp->stat->qp.wrs,
		      AW_STAT_QP_WRS(aw_sq_count(&qp->core.sq), aw_rq_count(&qp->rq)));
	if (qp->ud)
		aw_stat_write_qp(qp);
}

/* Called when the carrier was chosen. */
void aw_stat_write_path(const struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* begun: the QP has a socket. ended: its stream has ended in an error. gone: it has no socket any more. */
void aw_stat_stream_begun(struct aw_uqp *qp, const struct sockaddr_storage *peer)
	AW_REQUIRES(qp->lock);

/* The peer's name, as TLS has proven it; "": no TLS. */
void aw_stat_write_identity(struct aw_uqp *qp, const char *name) AW_REQUIRES(qp->lock);
void aw_stat_stream_ended(struct aw_uqp *qp) AW_REQUIRES(qp->lock);
void aw_stat_stream_gone(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

#endif
