// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A shared receive queue: the core's RQ behind a lock, and its limit event.
#include "net/cq/srq.h"

#include "ring/lock.h"

#include <errno.h>
#include <stdlib.h>

static int make_rq(const struct aw_srq *srq, uint32_t capacity, struct aw_mem *mem,
		   struct aw_rq *rq)
{
	size_t size = aw_rq_mem_size(capacity, srq->sge_max);
	int err = aw_mem_get(mem, srq->memory, AW_MEM_SRQ, size);

	if (!err)
		aw_rq_init(rq, mem->at, capacity, srq->sge_max);
	return err;
}

int aw_srq_init(struct aw_srq *srq, const void *pd, uint32_t capacity, uint32_t sge_max)
{
	if (capacity < 1 || capacity > AW_WR_MAX || sge_max < 1 || sge_max > AW_SGE_MAX)
		return EINVAL;
	*srq = (struct aw_srq){ .pd = pd, .sge_max = sge_max };
	int err = make_rq(srq, capacity, &srq->mem, &srq->rq);

	if (err)
		return err;
	pthread_mutex_init(&srq->lock, NULL);
	return 0;
}

void aw_srq_fini(struct aw_srq *srq)
{
	if (srq->async)
		aw_channel_forget(srq->async, &srq->limit_event);
	pthread_mutex_destroy(&srq->lock);
	aw_mem_put(&srq->mem);
}

int aw_srq_keep_in(struct aw_srq *srq, const struct aw_mem_source *source)
{
	srq->memory = source;
	return source ? aw_srq_resize(srq, srq->rq.capacity) : 0;
}

int aw_srq_post(struct aw_srq *srq, uint64_t wr_id, const struct aw_sge *sge, uint32_t count)
{
	bool posted;

	if (count > srq->sge_max)
		return EINVAL;
	aw_lock(&srq->lock);
	posted = aw_rq_post(&srq->rq, wr_id, sge, count);
	aw_unlock(&srq->lock);
	return posted ? 0 : ENOMEM;
}

bool aw_srq_take(struct aw_srq *srq, struct aw_rwqe *recv)
{
	bool is_short;

	return aw_srq_take_fit(srq, 0, recv, &is_short);
}

bool aw_srq_take_fit(struct aw_srq *srq, uint32_t len, struct aw_rwqe *recv, bool *is_short)
{
	bool taken;

	aw_lock(&srq->lock);
	taken = aw_rq_take_fit(&srq->rq, len, recv, is_short);
	/* The limit is disarmed as it is crossed. */
	if (taken && aw_rq_count(&srq->rq) < srq->limit) {
		srq->limit = 0;
		if (srq->async)
			aw_channel_raise(srq->async, &srq->limit_event);
	}
	aw_unlock(&srq->lock);
	return taken;
}

int aw_srq_set_limit(struct aw_srq *srq, uint32_t limit)
{
	int err = 0;

	aw_lock(&srq->lock);
	if (limit > srq->rq.capacity)
		err = EINVAL;
	else
		srq->limit = limit;
	aw_unlock(&srq->lock);
	return err;
}

int aw_srq_resize(struct aw_srq *srq, uint32_t capacity)
{
	struct aw_rq rq;
	struct aw_mem mem, unused;
	bool fits;
	int err;

	if (capacity < 1 || capacity > AW_WR_MAX)
		return EINVAL;
	err = make_rq(srq, capacity, &mem, &rq);
	if (err)
		return err;
	aw_lock(&srq->lock);
	fits = aw_rq_count(&srq->rq) <= capacity && srq->limit <= capacity;
	if (fits) {
		struct aw_rwqe recv;

		while (aw_rq_take(&srq->rq, &recv))
			aw_rq_post(&rq, recv.wr_id, recv.sge, recv.sge_count);
		srq->rq = rq;
		unused = srq->mem;
		srq->mem = mem;
	} else {
		unused = mem;
	}
	aw_unlock(&srq->lock);
	aw_mem_put(&unused);
	return fits ? 0 : EINVAL;
}
