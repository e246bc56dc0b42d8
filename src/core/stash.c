// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The stash's chunks: ULPDUs one behind the other, each behind its length.
#include "core/stash.h"

#include "core/promise.h"
#include "core/qp.h"
#include "wire/fpdu.h"

#include <string.h>

struct aw_stash_chunk {
	struct aw_stash_chunk *next;
	uint32_t size; /* octets behind this head */
	uint32_t used; /* of them, from the first on */
	uint32_t popped; /* of these, likewise */
};

#define LENGTH sizeof(uint32_t)

_Static_assert(sizeof(struct aw_stash_chunk) + LENGTH + FPDU_ULPDU_MAX <= AW_STASH_CHUNK_MAX,
	       "a chunk has room for the longest ULPDU");

bool aw_stash_passes(const uint8_t *ulpdu, size_t len)
{
	enum rdmap_opcode op;
	struct ddp_hdr hdr;

	if (ddp_get(ulpdu, len, &hdr))
		return true;
	if (!hdr.tagged)
		return hdr.qn != DDP_QN_SEND && hdr.qn != DDP_QN_READ;
	return rdmap_ctrl_get(hdr.ulp_ctrl, true, 0, &op) || op != RDMAP_WRITE;
}

static uint8_t *octets_of(struct aw_stash_chunk *chunk)
{
	return (uint8_t *)(chunk + 1);
}

/* Of a ULPDU, with its length, and so that the next length is aligned. */
static uint32_t entry_size(size_t len)
{
	return (uint32_t)((LENGTH + len + LENGTH - 1) / LENGTH * LENGTH);
}

/* Each chunk is twice as large as the one before. */
static size_t next_size(const struct aw_stash_chunk *last, uint32_t need)
{
	size_t size = last ? 2 * (sizeof(*last) + last->size) : AW_STASH_CHUNK_MIN;

	if (size > AW_STASH_CHUNK_MAX)
		size = AW_STASH_CHUNK_MAX;
	return size < sizeof(*last) + need ? sizeof(*last) + need : size;
}

static struct aw_stash_chunk *add_chunk(struct aw_qp *qp, uint32_t need)
{
	struct aw_stash *stash = &qp->stash;
	size_t size = next_size(stash->last, need);
	struct aw_stash_chunk *chunk;

	if (size > AW_STASH_MAX - stash->octets)
		return NULL;
	chunk = qp->ops->stash_get(qp->ctx, size);
	if (!chunk)
		return NULL;
	*chunk = (struct aw_stash_chunk){ .size = (uint32_t)(size - sizeof(*chunk)) };
	if (stash->last)
		stash->last->next = chunk;
	else
		stash->first = chunk;
	stash->last = chunk;
	stash->octets += size;
	return chunk;
}

bool aw_stash_push(struct aw_qp *qp, const uint8_t *ulpdu, size_t len)
{
	struct aw_stash_chunk *chunk = qp->stash.last;
	uint32_t need = entry_size(len), length = (uint32_t)len;
	uint8_t *at;

	AW_PROMISE(len <= FPDU_ULPDU_MAX);
	if (!chunk || chunk->size - chunk->used < need)
		chunk = add_chunk(qp, need);
	if (!chunk)
		return false;
	at = octets_of(chunk) + chunk->used;
	memcpy(at, &length, LENGTH);
	memcpy(at + LENGTH, ulpdu, len);
	chunk->used += need;
	if (qp->stash.octets >= AW_STASH_TELL)
		qp->not_ready = true;
	return true;
}

const uint8_t *aw_stash_front(const struct aw_qp *qp, size_t *len)
{
	struct aw_stash_chunk *chunk = qp->stash.first;
	uint32_t length;

	if (!chunk)
		return NULL;
	memcpy(&length, octets_of(chunk) + chunk->popped, LENGTH);
	*len = length;
	return octets_of(chunk) + chunk->popped + LENGTH;
}

static void drop_first(struct aw_qp *qp)
{
	struct aw_stash *stash = &qp->stash;
	struct aw_stash_chunk *chunk = stash->first;

	size_t size = sizeof(*chunk) + chunk->size;

	stash->first = chunk->next;
	stash->octets -= size;
	if (!stash->first) {
		stash->last = NULL;
		qp->not_ready = false;
	}
	qp->ops->stash_put(qp->ctx, chunk, size);
}

void aw_stash_pop(struct aw_qp *qp)
{
	struct aw_stash_chunk *chunk = qp->stash.first;
	uint32_t length;

	AW_PROMISE(chunk && chunk->popped < chunk->used);
	memcpy(&length, octets_of(chunk) + chunk->popped, LENGTH);
	chunk->popped += entry_size(length);
	if (chunk->popped == chunk->used)
		drop_first(qp);
}

void aw_stash_drop(struct aw_qp *qp)
{
	while (qp->stash.first)
		drop_first(qp);
}
