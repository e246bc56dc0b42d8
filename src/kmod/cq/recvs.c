// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "kmod/cq/recvs.h"

#include "kmod/base/limits.h"

static struct siw_rqe *recvs_at(const struct awk_recvs *recvs, u32 index)
{
	return (struct siw_rqe *)recvs->ring.mem + (index & (recvs->ring.count - 1));
}

int awk_recvs_create(struct awk_recvs *recvs, struct ib_ucontext *uctx, u32 count, u32 sge_max)
{
	spin_lock_init(&recvs->lock);
	recvs->user = uctx;
	recvs->sge_max = sge_max;
	return awk_ring_create(&recvs->ring, uctx, count ? roundup_pow_of_two(count) : 0,
			       sizeof(struct siw_rqe), 0);
}

void awk_recvs_destroy(struct awk_recvs *recvs)
{
	awk_ring_destroy(&recvs->ring);
}

static int recvs_put(struct awk_recvs *recvs, const struct ib_recv_wr *wr)
{
	struct siw_rqe *rqe = recvs_at(recvs, recvs->put);

	lockdep_assert_held(&recvs->lock);
	if (wr->num_sge < 0 || wr->num_sge > recvs->sge_max)
		return -EINVAL;
	if (recvs->ring.count == 0 || (rqe->flags & SIW_WQE_VALID))
		return -ENOMEM;
	rqe->id = wr->wr_id;
	rqe->num_sge = wr->num_sge;
	for (int i = 0; i < wr->num_sge; i++)
		rqe->sge[i] = (struct siw_sge){
			.laddr = wr->sg_list[i].addr,
			.length = wr->sg_list[i].length,
			.lkey = wr->sg_list[i].lkey,
		};
	rqe->flags = SIW_WQE_VALID;
	recvs->put++;
	return 0;
}

int awk_recvs_post(struct awk_recvs *recvs, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad)
{
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&recvs->lock, flags);
	while (wr && !err) {
		err = recvs_put(recvs, wr);
		if (err)
			*bad = wr;
		wr = wr->next;
	}
	spin_unlock_irqrestore(&recvs->lock, flags);
	return err;
}

/* rqe is our copy; its numbers are the program's. */
static void recv_fill(struct aw_rwqe *recv, const struct siw_rqe *rqe, u32 sge_max)
{
	u64 len = 0;

	recv->wr_id = rqe->id;
	recv->sge_count = rqe->num_sge <= sge_max ? rqe->num_sge : 0;
	for (u32 i = 0; i < recv->sge_count; i++) {
		recv->sge[i] = (struct aw_sge){
			.addr = rqe->sge[i].laddr,
			.len = rqe->sge[i].length,
			.lkey = rqe->sge[i].lkey,
		};
		len += rqe->sge[i].length;
	}
	recv->len = min_t(u64, len, U32_MAX);
}

bool awk_recvs_take(struct awk_recvs *recvs, struct aw_rwqe *recv)
{
	struct siw_rqe *at, rqe;
	unsigned long flags;
	bool taken;

	if (recvs->ring.count == 0)
		return false;
	spin_lock_irqsave(&recvs->lock, flags);
	at = recvs_at(recvs, recvs->get);
	/* Pairs with the release by which the program (or recvs_put's lock) made it valid. */
	taken = smp_load_acquire(&at->flags) & SIW_WQE_VALID;
	if (taken) {
		memcpy(&rqe, at, sizeof(rqe));
		smp_store_release(&at->flags, 0);
		recvs->get++;
	}
	spin_unlock_irqrestore(&recvs->lock, flags);
	if (taken)
		recv_fill(recv, &rqe, recvs->sge_max);
	return taken;
}

bool awk_recvs_below(struct awk_recvs *recvs, u32 limit)
{
	lockdep_assert_held(&recvs->lock);
	return limit > 0 &&
	       !(READ_ONCE(recvs_at(recvs, recvs->get + limit - 1)->flags) & SIW_WQE_VALID);
}
