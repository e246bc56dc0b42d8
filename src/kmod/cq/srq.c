// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "kmod/cq/srq.h"

#include "kmod/base/device.h"

static int srq_answer(const struct awk_srq *srq, struct ib_udata *udata)
{
	struct siw_uresp_create_srq resp = {
		.num_rqe = srq->recvs.ring.count,
		.srq_key = srq->recvs.ring.key,
	};

	if (udata->outlen < sizeof(resp))
		return -EINVAL;
	return ib_copy_to_udata(udata, &resp, sizeof(resp));
}

int awk_srq_create(struct ib_srq *base, struct ib_srq_init_attr *attr, struct ib_udata *udata)
{
	struct awk_device *dev = awk_device_of(base->device);
	struct awk_srq *srq = awk_srq_of(base);
	int err;

	if (attr->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (attr->attr.max_wr == 0 || attr->attr.max_wr > AWK_SRQ_WR_MAX ||
	    attr->attr.max_sge > AWK_SGE_MAX || attr->attr.srq_limit > attr->attr.max_wr)
		return -EINVAL;
	if (!awk_device_count(&dev->srqs))
		return -ENOMEM;
	err = awk_recvs_create(&srq->recvs, awk_ucontext_of(udata), attr->attr.max_wr, AWK_SGE_MAX);
	if (err)
		goto discount;
	srq->limit = attr->attr.srq_limit;
	attr->attr.max_wr = srq->recvs.ring.count;
	attr->attr.max_sge = AWK_SGE_MAX;
	err = udata ? srq_answer(srq, udata) : 0;
	if (err)
		goto destroy_recvs;
	return 0;

destroy_recvs:
	awk_recvs_destroy(&srq->recvs);
discount:
	atomic_dec(&dev->srqs);
	return err;
}

int awk_srq_modify(struct ib_srq *base, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata)
{
	struct awk_srq *srq = awk_srq_of(base);
	unsigned long flags;

	if (mask & IB_SRQ_MAX_WR)
		return -EOPNOTSUPP;
	if (!(mask & IB_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit > srq->recvs.ring.count)
		return -EINVAL;
	spin_lock_irqsave(&srq->recvs.lock, flags);
	srq->limit = attr->srq_limit;
	spin_unlock_irqrestore(&srq->recvs.lock, flags);
	return 0;
}

int awk_srq_query(struct ib_srq *base, struct ib_srq_attr *attr)
{
	struct awk_srq *srq = awk_srq_of(base);

	attr->max_wr = srq->recvs.ring.count;
	attr->max_sge = srq->recvs.sge_max;
	attr->srq_limit = READ_ONCE(srq->limit);
	return 0;
}

int awk_srq_destroy(struct ib_srq *base, struct ib_udata *udata)
{
	awk_recvs_destroy(&awk_srq_of(base)->recvs);
	atomic_dec(&awk_device_of(base->device)->srqs);
	return 0;
}

int awk_srq_post(struct ib_srq *base, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct awk_srq *srq = awk_srq_of(base);

	if (srq->recvs.user) {
		*bad = wr;
		return -EINVAL;
	}
	return awk_recvs_post(&srq->recvs, wr, bad);
}

bool awk_srq_take(struct awk_srq *srq, struct aw_rwqe *recv, bool *limit_due)
{
	bool taken = awk_recvs_take(&srq->recvs, recv);
	unsigned long flags;

	*limit_due = false;
	if (!taken || READ_ONCE(srq->limit) == 0)
		return taken;
	spin_lock_irqsave(&srq->recvs.lock, flags);
	*limit_due = awk_recvs_below(&srq->recvs, srq->limit);
	if (*limit_due)
		srq->limit = 0; /* raised once, until it is set again */
	spin_unlock_irqrestore(&srq->recvs.lock, flags);
	return taken;
}
