// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/model/queue.h"

#include "check/model/piece.h"
#include "check/report/report.h"

#include <stdlib.h>

#define QUEUE_SIZE_MIN 16

static struct aw_wr **queue_at(const struct aw_wr_queue *queue, unsigned index)
{
	return &queue->wrs[(queue->head + index) & (queue->size - 1)];
}

/* Makes room for one more. */
static bool queue_grow(struct aw_wr_queue *queue)
{
	const unsigned size = queue->size ? queue->size * 2 : QUEUE_SIZE_MIN;
	struct aw_wr **wrs;

	if (queue->count < queue->size)
		return true;
	wrs = malloc(size * sizeof(struct aw_wr *));
	if (!wrs)
		return false;
	for (unsigned i = 0; i < queue->count; i++)
		wrs[i] = *queue_at(queue, i);
	free(queue->wrs);
	queue->wrs = wrs;
	queue->size = size;
	queue->head = 0;
	return true;
}

const struct aw_wr *aw_queue_at(const struct aw_wr_queue *queue, unsigned index)
{
	return *queue_at(queue, index);
}

void aw_queue_answered(struct aw_wr_queue *queue, unsigned from)
{
	for (unsigned i = from; i < queue->count; i++) {
		struct aw_wr *wr = *queue_at(queue, i);

		wr->is_answered = !wr->is_signaled;
	}
}

static void signaled_add(struct aw_wr_queue *queue, int count)
{
	queue->signaled += (unsigned)count;
	if (queue->due)
		atomic_fetch_add_explicit(queue->due, (unsigned)count, memory_order_relaxed);
}

bool aw_wr_writes(const struct aw_wr *wr)
{
	return wr->is_recv || wr->opcode == IBV_WR_RDMA_READ ||
	       wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

void aw_queue_push(struct aw_wr_queue *queue, const struct aw_wr_posted *posted)
{
	const unsigned pieces =
		posted->is_inline || posted->sge_count < 0 ? 0 : (unsigned)posted->sge_count;
	struct aw_wr *wr;

	if (!queue_grow(queue))
		return;
	wr = calloc(1, sizeof(*wr) + pieces * sizeof(struct aw_piece));
	if (!wr)
		return;
	wr->wr_id = posted->wr_id;
	wr->posted_as = posted->posted_as;
	wr->owner = posted->owner;
	wr->opcode = posted->opcode;
	wr->remote = posted->remote;
	wr->is_recv = posted->is_recv;
	wr->is_signaled = posted->is_signaled;
	wr->is_fenced = posted->is_fenced;
	wr->pieces = pieces;
	aw_stack_take(&wr->posted);
	for (unsigned i = 0; i < pieces; i++)
		aw_piece_begin(wr, &wr->piece[i], &posted->sges[i], aw_wr_writes(wr));
	wr->sum = aw_wr_writes(wr) ? 0 : aw_pieces_sum(wr);
	*queue_at(queue, queue->count++) = wr;
	if (wr->is_signaled)
		signaled_add(queue, 1);
}

/* The WR leaves the queue; filled: bytes of its sinks that its message filled. */
static void wr_end(struct aw_wr_queue *queue, struct aw_wr *wr, uint64_t filled, enum aw_wr_end end)
{
	if (wr->is_signaled && !wr->is_done)
		signaled_add(queue, -1);
	if (!wr->is_done)
		aw_pieces_end(wr, filled, end);
	free(wr);
}

void aw_queue_unpush(struct aw_wr_queue *queue, const void *bad)
{
	unsigned first = queue->count;

	/* The newest WR that was posted as bad: its ibv_send_wr may have been used before. */
	while (first > 0 && (*queue_at(queue, first - 1))->posted_as != bad)
		first--;
	if (first == 0)
		return;
	while (queue->count >= first)
		wr_end(queue, *queue_at(queue, --queue->count), 0, AW_WR_WITHDRAWN);
}

static int index_find(const struct aw_wr_queue *queue, uint64_t wr_id, bool errors)
{
	for (unsigned i = 0; i < queue->count; i++) {
		const struct aw_wr *wr = *queue_at(queue, i);

		if (wr->wr_id == wr_id && !wr->is_done && (wr->is_signaled || errors))
			return (int)i;
	}
	return -1;
}

const struct aw_wr *aw_queue_find(const struct aw_wr_queue *queue, uint64_t wr_id, bool errors)
{
	const int index = index_find(queue, wr_id, errors);

	return index < 0 ? NULL : *queue_at(queue, (unsigned)index);
}

const struct aw_wr *aw_queue_find_remote(const struct aw_wr_queue *queue, uint32_t rkey,
					 uint64_t addr, uint64_t length)
{
	for (unsigned i = 0; i < queue->count; i++) {
		const struct aw_wr *wr = *queue_at(queue, i);

		if (aw_remote_has(&wr->remote, rkey, addr, length))
			return wr;
	}
	return NULL;
}

static void head_pop(struct aw_wr_queue *queue, uint64_t filled, enum aw_wr_end end)
{
	struct aw_wr *wr = *queue_at(queue, 0);

	queue->head = (queue->head + 1) & (queue->size - 1);
	queue->count--;
	wr_end(queue, wr, filled, end);
}

/* A Write with immediate data takes a receive and leaves its memory alone. */
static uint64_t filled_by(const struct ibv_wc *wc)
{
	return wc->status == IBV_WC_SUCCESS && wc->opcode != IBV_WC_RECV_RDMA_WITH_IMM
		       ? wc->byte_len
		       : 0;
}

bool aw_queue_complete(struct aw_wr_queue *queue, const struct ibv_wc *wc, bool in_order)
{
	const bool is_error = wc->status != IBV_WC_SUCCESS;
	const int index = index_find(queue, wc->wr_id, is_error);
	const enum aw_wr_end end = is_error ? AW_WR_FAILED : AW_WR_SUCCEEDED;
	struct aw_wr *wr;

	if (index < 0)
		return false;
	/* A send's completion is that of the unsignaled ones before it as well, an error only its own. */
	for (int i = 0; in_order && i <= index; i++)
		head_pop(queue, filled_by(wc), is_error && i < index ? AW_WR_WITHDRAWN : end);
	if (in_order)
		return true;
	wr = *queue_at(queue, (unsigned)index);
	aw_pieces_end(wr, filled_by(wc), end);
	signaled_add(queue, -1);
	wr->is_done = true;
	while (queue->count && (*queue_at(queue, 0))->is_done)
		head_pop(queue, 0, AW_WR_WITHDRAWN);
	return true;
}

void aw_queue_clear(struct aw_wr_queue *queue)
{
	while (queue->count)
		head_pop(queue, 0, AW_WR_WITHDRAWN);
}

void aw_queue_forget(struct aw_wr_queue *queue)
{
	queue->count = queue->signaled = 0;
}

void aw_queue_fini(struct aw_wr_queue *queue)
{
	free(queue->wrs);
	*queue = (struct aw_wr_queue){ 0 };
}
