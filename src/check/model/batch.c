// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/model/batch.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct aw_wr_batch {
	struct ibv_send_wr *wrs;
	struct ibv_sge *sges; /* those of the WRs in their order */
	unsigned wrs_count, wrs_size, sges_count, sges_size;
};

struct aw_wr_batch *aw_batch_create(void)
{
	return calloc(1, sizeof(struct aw_wr_batch));
}

void aw_batch_destroy(struct aw_wr_batch *batch)
{
	if (!batch)
		return;
	free(batch->wrs);
	free(batch->sges);
	free(batch);
}

/* Makes room for count members of size bytes. */
static bool room_make(void *array, unsigned *size, unsigned count, size_t member)
{
	const unsigned wanted = count < 8 ? 8 : count * 2;
	void *old, *new;

	if (count <= *size)
		return true;
	memcpy(&old, array, sizeof(old));
	new = realloc(old, wanted * member);
	if (!new)
		return false;
	memcpy(array, &new, sizeof(new));
	*size = wanted;
	return true;
}

void aw_batch_add(struct aw_wr_batch *batch, enum ibv_wr_opcode opcode, uint64_t wr_id,
		  unsigned flags)
{
	if (!batch ||
	    !room_make(&batch->wrs, &batch->wrs_size, batch->wrs_count + 1, sizeof(*batch->wrs)))
		return;
	batch->wrs[batch->wrs_count++] =
		(struct ibv_send_wr){ .wr_id = wr_id, .opcode = opcode, .send_flags = flags };
}

void aw_batch_remote(struct aw_wr_batch *batch, uint32_t rkey, uint64_t addr)
{
	struct ibv_send_wr *wr;

	if (!batch || !batch->wrs_count)
		return;
	wr = &batch->wrs[batch->wrs_count - 1];
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.remote_addr = addr;
	} else {
		wr->wr.rdma.rkey = rkey;
		wr->wr.rdma.remote_addr = addr;
	}
}

void aw_batch_sges(struct aw_wr_batch *batch, const struct ibv_sge *sges, size_t count)
{
	if (!batch || !batch->wrs_count ||
	    !room_make(&batch->sges, &batch->sges_size, batch->sges_count + (unsigned)count,
		       sizeof(*batch->sges)))
		return;
	memcpy(&batch->sges[batch->sges_count], sges, count * sizeof(*sges));
	batch->sges_count += (unsigned)count;
	batch->wrs[batch->wrs_count - 1].num_sge += (int)count;
}

void aw_batch_inline(struct aw_wr_batch *batch, size_t len)
{
	const struct ibv_sge sge = { .length = (uint32_t)len };

	aw_batch_sges(batch, &sge, 1);
	if (batch && batch->wrs_count)
		batch->wrs[batch->wrs_count - 1].send_flags |= IBV_SEND_INLINE;
}

struct ibv_send_wr *aw_batch_list(struct aw_wr_batch *batch)
{
	struct ibv_sge *sge;

	if (!batch || !batch->wrs_count)
		return NULL;
	sge = batch->sges;
	for (unsigned i = 0; i < batch->wrs_count; i++) {
		batch->wrs[i].sg_list = sge;
		batch->wrs[i].next = i + 1 < batch->wrs_count ? &batch->wrs[i + 1] : NULL;
		if (sge)
			sge += batch->wrs[i].num_sge;
	}
	return batch->wrs;
}
