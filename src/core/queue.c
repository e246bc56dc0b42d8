// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Rings of WRs whose number of slots is a power of two, so that indices may wrap at 2^32. A slot is as
// large as the queue's own limits ask for, not the API's. The caller holds the QP's or SRQ's lock.
#include "core/queue.h"

#include "core/promise.h"

#include <string.h>

/* A slot of a receive queue; struct aw_rwqe with only the SGEs there is room for. */
struct rq_slot {
	uint64_t wr_id;
	uint32_t len;
	uint32_t sge_count;
	struct aw_sge sge[];
};

/* The power of two that holds n slots; 0 for none. */
static uint32_t slots_for(uint32_t n)
{
	uint32_t slots = 1;

	if (n == 0)
		return 0;
	while (slots < n)
		slots *= 2;
	return slots;
}

static uint32_t mask_for(uint32_t capacity)
{
	return capacity ? slots_for(capacity) - 1 : 0;
}

uint32_t aw_sq_stride(uint32_t sge_max, uint32_t inline_max)
{
	uint32_t tail = sge_max * (uint32_t)sizeof(struct aw_sge);

	AW_PROMISE(sge_max <= AW_SGE_MAX && inline_max <= AW_INLINE_MAX);
	if (tail < inline_max)
		tail = (inline_max + 15) & ~15u;
	if (tail < sizeof(struct aw_swqe) - offsetof(struct aw_swqe, sge))
		return sizeof(struct aw_swqe);
	return (uint32_t)offsetof(struct aw_swqe, sge) + tail;
}

size_t aw_sq_mem_size(uint32_t capacity, uint32_t sge_max, uint32_t inline_max)
{
	return (size_t)slots_for(capacity) * aw_sq_stride(sge_max, inline_max);
}

void aw_sq_init(struct aw_sq *sq, void *mem, uint32_t capacity, uint32_t stride)
{
	AW_PROMISE(capacity <= AW_WR_MAX);
	*sq = (struct aw_sq){
		.mem = mem,
		.stride = stride,
		.capacity = capacity,
		.mask = mask_for(capacity),
	};
}

struct aw_swqe *aw_sq_reserve(const struct aw_sq *sq)
{
	if (aw_sq_count(sq) >= sq->capacity)
		return NULL;
	return aw_sq_at(sq, sq->tail);
}

void aw_sq_commit(struct aw_sq *sq)
{
	AW_PROMISE(aw_sq_count(sq) < sq->capacity);
	sq->tail++;
}

static uint32_t rq_stride(uint32_t sge_max)
{
	AW_PROMISE(sge_max <= AW_SGE_MAX);
	return (uint32_t)(sizeof(struct rq_slot) + sge_max * sizeof(struct aw_sge));
}

size_t aw_rq_mem_size(uint32_t capacity, uint32_t sge_max)
{
	return (size_t)slots_for(capacity) * rq_stride(sge_max);
}

void aw_rq_init(struct aw_rq *rq, void *mem, uint32_t capacity, uint32_t sge_max)
{
	AW_PROMISE(capacity <= AW_WR_MAX);
	*rq = (struct aw_rq){
		.mem = mem,
		.stride = rq_stride(sge_max),
		.capacity = capacity,
		.mask = mask_for(capacity),
	};
}

static struct rq_slot *rq_at(const struct aw_rq *rq, uint32_t index)
{
	return (struct rq_slot *)(rq->mem + (size_t)(index & rq->mask) * rq->stride);
}

/* The sum of the SGEs' lengths; a sum that 32 bits cannot hold is UINT32_MAX. */
static uint32_t sge_sum(const struct aw_sge *sge, uint32_t count)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += sge[i].len;
	return sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
}

/* Most receives have one, for which no call is made. */
static void copy_sges(struct aw_sge *to, const struct aw_sge *from, uint32_t count)
{
	if (count == 1)
		*to = *from;
	else if (count > 0)
		memcpy(to, from, count * sizeof(*to));
}

bool aw_rq_post(struct aw_rq *rq, uint64_t wr_id, const struct aw_sge *sge, uint32_t count)
{
	struct rq_slot *slot;

	if (aw_rq_count(rq) >= rq->capacity)
		return false;
	AW_PROMISE(sizeof(*slot) + count * sizeof(*sge) <= rq->stride);
	slot = rq_at(rq, rq->tail);
	slot->wr_id = wr_id;
	slot->len = sge_sum(sge, count);
	slot->sge_count = count;
	copy_sges(slot->sge, sge, count);
	rq->tail++;
	return true;
}

bool aw_rq_take(struct aw_rq *rq, struct aw_rwqe *recv)
{
	const struct rq_slot *slot;

	if (aw_rq_count(rq) == 0)
		return false;
	slot = rq_at(rq, rq->head);
	AW_PROMISE(sizeof(*slot) + slot->sge_count * sizeof(*slot->sge) <= rq->stride);
	recv->wr_id = slot->wr_id;
	recv->len = slot->len;
	recv->sge_count = slot->sge_count;
	copy_sges(recv->sge, slot->sge, slot->sge_count);
	rq->head++;
	return true;
}

bool aw_rq_take_fit(struct aw_rq *rq, uint32_t len, struct aw_rwqe *recv, bool *is_short)
{
	if (aw_rq_count(rq) > 0 && rq_at(rq, rq->head)->len < len) {
		*is_short = true;
		return false;
	}
	return aw_rq_take(rq, recv);
}
