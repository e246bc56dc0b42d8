// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Life of a CQ, and the push into it. A program polls its ring without the kernel.
#include "kmod/cq/cq.h"

#include "kmod/base/device.h"

static struct siw_cqe *cq_at(const struct awk_cq *cq, u32 index)
{
	return (struct siw_cqe *)cq->ring.mem + (index & (cq->ring.count - 1));
}

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

static int cq_create(struct ib_cq *base, const struct ib_cq_init_attr *attr, struct ib_udata *udata)
{
	struct awk_cq *cq = awk_cq_of(base);
	int err;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (attr->cqe == 0 || attr->cqe > AWK_CQE_MAX)
		return -EINVAL;
	spin_lock_init(&cq->lock);
	err = awk_ring_create(&cq->ring, awk_ucontext_of(udata), roundup_pow_of_two(attr->cqe),
			      sizeof(struct siw_cqe), sizeof(*cq->ctrl));
	if (err)
		return err;
	base->cqe = cq->ring.count;
	cq->ctrl = (void *)((struct siw_cqe *)cq->ring.mem + cq->ring.count);
	err = udata ? cq_answer(cq, udata) : 0;
	if (err)
		awk_ring_destroy(&cq->ring);
	return err;
}

int awk_cq_create(struct ib_cq *base, const struct ib_cq_init_attr *attr, awk_cq_request *request)
{
	struct awk_device *dev = awk_device_of(base->device);
	int err;

	if (!awk_device_count(&dev->cqs))
		return -ENOMEM;
	err = cq_create(base, attr, awk_cq_udata(request));
	if (err)
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

static bool cq_is_armed_for(struct awk_cq *cq, bool solicited)
{
	u32 armed = READ_ONCE(cq->ctrl->flags);

	if (!(armed & SIW_NOTIFY_NEXT_COMPLETION) && !(solicited && (armed & SIW_NOTIFY_SOLICITED)))
		return false;
	WRITE_ONCE(cq->ctrl->flags, SIW_NOTIFY_NOT);
	return true;
}

static enum awk_cq_news cq_overflow(struct awk_cq *cq)
{
	bool told = cq->overflowed;

	WRITE_ONCE(cq->overflowed, true);
	return told ? AWK_CQ_QUIET : AWK_CQ_OVERFLOW;
}

static enum awk_cq_news cq_push_locked(struct awk_cq *cq, const struct siw_cqe *cqe)
{
	struct siw_cqe *at = cq_at(cq, cq->put);
	u8 flags = cqe->flags;

	if (READ_ONCE(at->flags) & SIW_WQE_VALID)
		return cq_overflow(cq);
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
	smp_store_release(&at->flags, flags | SIW_WQE_VALID);
	smp_mb();
	cq->put++;
	return cq_is_armed_for(cq, flags & SIW_WQE_SOLICITED) ? AWK_CQ_NOTIFY : AWK_CQ_QUIET;
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
