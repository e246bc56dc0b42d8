// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Buffers that a QP borrows while octets are under way: a stage for a half-received FPDU, a batch for
// octets the socket did not take. An idle QP holds neither; freed ones are kept warm for the next.
#ifndef NET_POOL_H
#define NET_POOL_H

#include "core/tx.h"
#include "wire/fpdu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A large stage: several whole FPDUs fit; sized to an L2 cache. */
#define AW_STAGE_OCTETS (256u * 1024)
/*
 * So many of them are out at a time, in use or waiting with a QP. Who finds no place receives into a stage of
 * FPDU_MAX octets: whatever is left of it, also where a whole message is held for a receive, fits there.
 */
#define AW_STAGES_LARGE_MAX 64
/* A rest of so few octets is copied between stages, out of a large one when no place is left; with more it waits. */
#define AW_STAGE_COPY_MAX 4096
/* A batch is closed at this many octets; its arena holds that and one more FPDU. */
#define AW_BATCH_OCTETS (256u * 1024)
#define AW_BATCH_IOV 256

struct aw_stage {
	struct aw_stage *next; /* in the pool */
	uint32_t size; /* of buf: AW_STAGE_OCTETS, FPDU_MAX, or what waits there */
	size_t len; /* octets at buf that were not used yet */
	uint8_t buf[];
};

struct aw_batch {
	struct aw_batch *next; /* in the pool */
	struct aw_iov iov[AW_BATCH_IOV];
	unsigned int iov_count;
	unsigned int iov_sent; /* entries that are wholly sent */
	uint8_t arena[AW_BATCH_OCTETS + AW_TX_ARENA_MIN];
};

/* Room for a whole FPDU at least. NULL when memory is out. len is 0. */
struct aw_stage *aw_stage_get(void);
void aw_stage_put(struct aw_stage *stage);

/*
 * What waits with a QP, in place of stage, until its FPDU is whole or a receive is there: stage itself, or
 * one that is no longer than it must be. Peers who never finish theirs cost no more than what they sent.
 */
struct aw_stage *aw_stage_keep(struct aw_stage *stage);

/* Back from aw_stage_keep, with room for a whole FPDU. NULL when memory is out: stage goes on waiting. */
struct aw_stage *aw_stage_resume(struct aw_stage *stage);

/* NULL when memory is out. iov_count and iov_sent are 0. */
struct aw_batch *aw_batch_get(void);
void aw_batch_put(struct aw_batch *batch);

/* Makes sure that one of each could be had now, as a new stream needs; false when memory is out. */
bool aw_pool_warm(void);

/* Batches handed out and not put. */
unsigned int aw_batches_out(void);

/* Copies what is not sent of [start, start + len) into the arena: that memory may go then. */
void aw_batch_unlend(struct aw_batch *batch, const void *start, size_t len);

/* Frees what is kept. Called as the engine stops. */
void aw_pool_flush(void);

/* Around a fork, so that parent and child go on with whole lists. */
void aw_pool_fork_prepare(void);
void aw_pool_fork_done(void);

#endif
