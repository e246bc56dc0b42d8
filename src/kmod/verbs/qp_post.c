// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Posting: WRs go into the ring, and the stream sends them or leaves that to its worker. A completion handler may post: no
// handler that could is called here.
#include "kmod/qp/qp.h"
#include "kmod/qp/sqe.h"
#include "kmod/stream/stream.h"
#include "kmod/verbs/verbs.h"

static int sq_put(struct awk_qp *qp, const struct ib_send_wr *wr)
{
	struct siw_sqe *sqe = (struct siw_sqe *)qp->sq.mem + (qp->sq_put & (qp->sq.count - 1));
	int flags;

	lockdep_assert_held(&qp->sq_lock);
	/* Pairs with the release of sq_take. */
	if (qp->sq.count == 0 || (smp_load_acquire(&sqe->flags) & SIW_WQE_VALID))
		return -ENOMEM;
	flags = awk_sqe_from_wr(sqe, wr, qp->cap.max_send_sge);
	if (flags < 0)
		return flags;
	smp_store_release(&sqe->flags, flags | SIW_WQE_VALID);
	qp->sq_put++;
	return 0;
}

/* A program's WRs are in its ring: it calls without any when no thread may be at work on them. */
int awk_qp_post_send(struct ib_qp *base, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct awk_qp *qp = awk_qp_of(base);
	unsigned long flags;
	int err = 0;

	if (qp->user) {
		if (wr) {
			*bad = wr;
			return -EINVAL;
		}
		awk_stream_push(qp);
		return 0;
	}
	spin_lock_irqsave(&qp->sq_lock, flags);
	for (; wr && !err; wr = wr->next) {
		err = sq_put(qp, wr);
		if (err)
			*bad = wr;
	}
	spin_unlock_irqrestore(&qp->sq_lock, flags);
	awk_stream_posted(qp);
	return err;
}

int awk_qp_post_recv(struct ib_qp *base, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct awk_qp *qp = awk_qp_of(base);
	int err;

	if (qp->user || qp->srq) {
		*bad = wr;
		return -EINVAL;
	}
	err = awk_recvs_post(&qp->recvs, wr, bad);
	awk_stream_recv_posted(qp);
	return err;
}
