// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Posting to a user-space QP: WRs are filled in where they lie on the queue, and transmitted by the
// call that ends the post, unless they wait for the next poll (net/qp/deferral.h).
#include "net/base/probe.h"
#include "net/qp/deferral.h"
#include "net/qp/rnr.h"
#include "net/qp/uqp_sock.h"
#include "net/qp/varied.h"
#include "ring/lock.h"

#include <errno.h>

void aw_uqp_send_begin(struct aw_uqp *qp)
{
	aw_lock(&qp->lock);
}

static bool has_slot(const struct aw_uqp *qp, uint32_t ahead) AW_REQUIRES(qp->lock)
{
	uint32_t unpolled = atomic_load_explicit(&qp->of_cq.unpolled, memory_order_relaxed);

	return aw_sq_count(&qp->core.sq) + unpolled + ahead < qp->core.sq.capacity;
}

struct aw_swqe *aw_uqp_send_slot_ahead(struct aw_uqp *qp, uint32_t ahead)
{
	/* WRs that wait may be unsignalled, and then release their slots when they are sent. */
	if (!has_slot(qp, ahead))
		aw_uqp_flush(qp);
	return has_slot(qp, ahead) ? aw_sq_at(&qp->core.sq, qp->core.sq.tail + ahead) : NULL;
}

struct aw_swqe *aw_uqp_send_slot(struct aw_uqp *qp)
{
	return aw_uqp_send_slot_ahead(qp, 0);
}

void aw_uqp_send_commit(struct aw_uqp *qp)
{
	const struct aw_swqe *wqe = aw_sq_at(&qp->core.sq, qp->core.sq.tail);

	aw_probe_post(qp->qpn, wqe);
	qp->deferral.bytes += wqe->op == AW_OP_READ ? (uint64_t)wqe->len * AW_WAITING_READ_WEIGHT
						    : wqe->len;
	aw_qp_post(&qp->core);
}

void aw_uqp_send_end(struct aw_uqp *qp)
{
	if (!aw_deferral_post(qp)) {
		aw_uqp_push(qp);
		aw_deferral_sent(qp);
	}
	aw_uqp_unlock(qp);
}

void aw_uqp_send_end_late(struct aw_uqp *qp)
{
	if (!aw_deferral_hold(qp, aw_varied_hold_ns(qp))) {
		aw_uqp_push(qp);
		aw_deferral_sent(qp);
	}
	aw_uqp_unlock(qp);
}

int aw_uqp_recv(struct aw_uqp *qp, uint64_t wr_id, const struct aw_sge *sge, uint32_t count)
{
	if (qp->attr.srq || qp->attr.xrc || count > qp->attr.recv_sge_max)
		return EINVAL;
	aw_lock(&qp->lock);
	bool posted = aw_rq_post(&qp->rq, wr_id, sge, count);

	if (posted)
		aw_qp_recv_posted(&qp->core);
	if (posted && aw_rnr_waits(qp))
		aw_uqp_serve(qp);
	aw_uqp_unlock(qp);
	return posted ? 0 : ENOMEM;
}
