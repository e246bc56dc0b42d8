// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A shared receive queue: one ring of receives for many QPs, with its limit event.
#ifndef NET_SRQ_H
#define NET_SRQ_H

#include "base/thread_safety.h"
#include "core/queue.h"
#include "net/cq/channel.h"
#include "net/mem/mem.h"

struct aw_srq {
	const void *pd; /* fixed; its receives' MRs must have it */
	aw_mutex lock; /* taken after QP locks; guards all */
	struct aw_rq rq;
	struct aw_mem mem;
	const struct aw_mem_source *memory; /* NULL: the heap */
	uint32_t sge_max;
	uint32_t limit; /* 0: not armed */
	struct aw_channel *async; /* or NULL */
	struct aw_source limit_event;
};

/* object: given to readers of async events. 0 or ENOMEM, EINVAL. */
int aw_srq_init(struct aw_srq *srq, const void *pd, uint32_t capacity, uint32_t sge_max);
/* Called before the SRQ is used: takes its memory from source from now on. 0 or ENOMEM. */
int aw_srq_keep_in(struct aw_srq *srq, const struct aw_mem_source *source);
void aw_srq_fini(struct aw_srq *srq);
/* 0, ENOMEM when full, EINVAL for too many SGEs. */
int aw_srq_post(struct aw_srq *srq, uint64_t wr_id, const struct aw_sge *sge, uint32_t count)
	AW_EXCLUDES(srq->lock);
bool aw_srq_take(struct aw_srq *srq, struct aw_rwqe *recv) AW_EXCLUDES(srq->lock);
/* As aw_rq_take_fit. */
bool aw_srq_take_fit(struct aw_srq *srq, uint32_t len, struct aw_rwqe *recv, bool *is_short)
	AW_EXCLUDES(srq->lock);
/* Arms the limit: the next take that leaves fewer than limit raises the event once. EINVAL. */
int aw_srq_set_limit(struct aw_srq *srq, uint32_t limit) AW_EXCLUDES(srq->lock);
/* Grows or shrinks the ring; EINVAL when more are posted than fit. */
int aw_srq_resize(struct aw_srq *srq, uint32_t capacity) AW_EXCLUDES(srq->lock);

#endif
