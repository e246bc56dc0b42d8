// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Life of a CQ, and the push into it. A program polls its ring without the kernel.
#include "kmod/cq/cq.h"

#include "kmod/base/device.h"

static int cq_answer(const struct awk_cq *cq, struct ib_udata *udata)
{
	struct siw_uresp_create_cq resp = {
		.num_cqe = cq->ring.count,
		.cq_key = cq->ring.key,
	};

	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

int awk_cq_create(struct ib_cq *base, const struct ib_cq_init_attr *attr, awk_cq_request *request)
{
	struct awk_device *dev = awk_device_of(base->device);
	struct ib_udata *udata = awk_cq_udata(request);
	struct awk_cq *cq = awk_cq_of(base);
	int err;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->cqe == 0 || attr->cqe > AWK_CQE_MAX)
		return -EINVAL;
	if (!awk_device_count(&dev->cqs))
		return -ENOMEM;
	spin_lock_init(&cq->lock);
	err = awk_ring_create(&cq->ring, awk_ucontext_of(udata), roundup_pow_of_two(attr->cqe),
			      sizeof(struct siw_cqe), sizeof(*cq->ctrl));
	if (err)
		goto discount;
	base->cqe = cq->ring.count;
	cq->ctrl = (void *)((struct siw_cqe *)cq->ring.mem + cq->ring.count);
	err = udata ? cq_answer(cq, udata) : 0;
	if (err)
		goto destroy_ring;
	return 0;

destroy_ring:
	awk_ring_destroy(&cq->ring);
discount:
	atomic_dec(&dev->cqs);
	return err;
}

/* The verbs core destroys the CQ's QPs before, so nothing completes into it any more. */
int awk_cq_destroy(struct ib_cq *base, struct ib_udata *udata)
{
	awk_ring_destroy(&awk_cq_of(base)->ring);
	atomic_dec(&awk_device_of(base->device)->cqs);
	return 0;
}

static enum awk_cq_news cq_push_locked(struct awk_cq *cq, const struct siw_cqe *cqe)
{
	struct siw_cqe *at = (struct siw_cqe *)cq->ring.mem + (cq->put & (cq->ring.count - 1));
	enum awk_cq_news news;
	u32 armed;

	lockdep_assert_held(&cq->lock);
	if (READ_ONCE(at->flags) & SIW_WQE_VALID) {
		news = cq->overflowed ? AWK_CQ_QUIET : AWK_CQ_OVERFLOW;
		WRITE_ONCE(cq->overflowed, true);
		return news;
	}
	at->id = cqe->id;
	at->opcode = cqe->opcode;
	at->status = cqe->status;
	at->bytes = cqe->bytes;
	at->imm_data = cqe->imm_data;
	at->qp_id = cqe->qp_id;
	/*
	 * A thread that polls sees the entry whole; a thread that arms and then finds nothing is
	 * seen to have armed.
	 */
	smp_store_release(&at->flags, cqe->flags | SIW_WQE_VALID);
	smp_mb();
	cq->put++;
	armed = READ_ONCE(cq->ctrl->flags);
	if (!(armed & SIW_NOTIFY_NEXT_COMPLETION) &&
	    !((cqe->flags & SIW_WQE_SOLICITED) && (armed & SIW_NOTIFY_SOLICITED)))
		return AWK_CQ_QUIET;
	WRITE_ONCE(cq->ctrl->flags, SIW_NOTIFY_NOT);
	return AWK_CQ_NOTIFY;
}

enum awk_cq_news awk_cq_push(struct awk_cq *cq, const struct siw_cqe *cqe)
{
	enum awk_cq_news news;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	news = cq_push_locked(cq, cqe);
	spin_unlock_irqrestore(&cq->lock, flags);
	return news;
}
