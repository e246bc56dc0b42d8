// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The send queue and the receive queue: bounded rings of WRs in memory that the caller gives.
// One lock (the QP's, or the SRQ's) guards each; nothing here allocates or blocks.
#ifndef CORE_QUEUE_H
#define CORE_QUEUE_H

#include "core/types.h"

/*
 * Indices grow without bound and wrap; the number of slots is a power of two, so the slot of an
 * index is a mask away even across the wrap. head <= next <= tail.
 */
struct aw_sq {
	uint8_t *mem;
	uint32_t stride; /* octets a slot */
	uint32_t capacity; /* WRs; 0 to AW_WR_MAX */
	uint32_t mask; /* slots less one */
	uint32_t head; /* oldest WR without its completion */
	uint32_t next; /* next WR to start transmitting */
	uint32_t tail; /* next free */
};

/* Octets of one slot and of the whole ring. sge_max <= AW_SGE_MAX, inline_max <= AW_INLINE_MAX. */
uint32_t aw_sq_stride(uint32_t sge_max, uint32_t inline_max);
size_t aw_sq_mem_size(uint32_t capacity, uint32_t sge_max, uint32_t inline_max);
void aw_sq_init(struct aw_sq *sq, void *mem, uint32_t capacity, uint32_t stride);

static inline uint32_t aw_sq_count(const struct aw_sq *sq)
{
	return sq->tail - sq->head;
}

static inline struct aw_swqe *aw_sq_at(const struct aw_sq *sq, uint32_t index)
{
	return (struct aw_swqe *)(sq->mem + (size_t)(index & sq->mask) * sq->stride);
}

/* The free slot at the tail to fill in, NULL when full; it counts only once committed. */
struct aw_swqe *aw_sq_reserve(const struct aw_sq *sq);
void aw_sq_commit(struct aw_sq *sq);

struct aw_rq {
	uint8_t *mem;
	uint32_t stride;
	uint32_t capacity; /* 0: a QP that uses an SRQ */
	uint32_t mask;
	uint32_t head;
	uint32_t tail;
};

size_t aw_rq_mem_size(uint32_t capacity, uint32_t sge_max);
void aw_rq_init(struct aw_rq *rq, void *mem, uint32_t capacity, uint32_t sge_max);

static inline uint32_t aw_rq_count(const struct aw_rq *rq)
{
	return rq->tail - rq->head;
}

/* Copies a receive in; false when full. sge has count entries, at most the sge_max of init. */
bool aw_rq_post(struct aw_rq *rq, uint64_t wr_id, const struct aw_sge *sge, uint32_t count);
/* Copies the oldest receive out; false when empty. Writes only the SGEs there are. */
bool aw_rq_take(struct aw_rq *rq, struct aw_rwqe *recv);
/* As aw_rq_take if the receive has room for len octets; else it stays, and *is_short is set. */
bool aw_rq_take_fit(struct aw_rq *rq, uint32_t len, struct aw_rwqe *recv, bool *is_short);

#endif
