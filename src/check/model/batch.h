// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The work requests of the extended interface between ibv_wr_start and ibv_wr_complete, as a list of ibv_send_wr, so that
// the same rules judge them.
#ifndef CHECK_MODEL_BATCH_H
#define CHECK_MODEL_BATCH_H

#include <infiniband/verbs.h>

struct aw_wr_batch;

/* NULL: memory is out, and the batch is not followed; the functions below take it. */
struct aw_wr_batch *aw_batch_create(void);
void aw_batch_destroy(struct aw_wr_batch *batch);

/* Begins a work request; the setters belong to the last one. */
void aw_batch_add(struct aw_wr_batch *batch, enum ibv_wr_opcode opcode, uint64_t wr_id,
		  unsigned flags);
void aw_batch_remote(struct aw_wr_batch *batch, uint32_t rkey, uint64_t addr);
void aw_batch_sges(struct aw_wr_batch *batch, const struct ibv_sge *sges, size_t count);
/* Inline data of len bytes, which the library has copied. */
void aw_batch_inline(struct aw_wr_batch *batch, size_t len);

/* The list; NULL: it is empty. */
struct ibv_send_wr *aw_batch_list(struct aw_wr_batch *batch);

#endif
