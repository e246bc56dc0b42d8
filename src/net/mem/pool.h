// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Buffers that a QP borrows while bytes are under way: a stage for a half-received FPDU, a batch
// for bytes that the socket did not take. An idle QP holds neither; freed ones are kept warm for
// the next QP.
#ifndef NET_POOL_H
#define NET_POOL_H

#include "core/tx.h"
#include "wire/fpdu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a large stage: several whole FPDUs fit; sized to an L2 cache. */
#define AW_STAGE_BYTES (256u * 1024)
/*
 * Large stages of the process at a time, in use or waiting with a QP. A QP that gets no large stage
 * receives into a stage of FPDU_MAX bytes. The rest in either stage, also of a whole message that
 * is held for a receive, fits there.
 */
#define AW_STAGES_LARGE_MAX 64
/*
 * A rest of at most so many bytes is copied to a stage of its size, from a large stage only when
 * there are no more large stages. A longer rest waits where it is.
 */
#define AW_STAGE_COPY_MAX 4096
/* A batch is closed at this many bytes; its arena holds that and one more FPDU. */
#define AW_BATCH_BYTES (256u * 1024)
#define AW_BATCH_IOV 256

struct aw_stage {
	struct aw_stage *next; /* in the pool */
	/* of buf: AW_STAGE_BYTES, FPDU_MAX, or the length of the rest that waits there */
	uint32_t size;
	size_t len; /* bytes at buf that were not used yet */
	uint8_t buf[];
};

struct aw_batch {
	struct aw_batch *next; /* in the pool */
	struct aw_lane *lane; /* a thread's own, to which it goes back; NULL: the pool's */
	struct aw_iov iov[AW_BATCH_IOV];
	unsigned int iov_count;
	unsigned int iov_sent; /* entries that are wholly sent */
	uint8_t arena[AW_BATCH_BYTES + AW_TX_ARENA_MIN];
};

/* A stage with room for a whole FPDU at least, and len 0. NULL when memory is out. */
struct aw_stage *aw_stage_get(void);
void aw_stage_put(struct aw_stage *stage);

/*
 * Returns the stage that waits with a QP until its FPDU is whole or a receive is there: stage
 * itself, or one that is no longer than necessary. So peers that never finish an FPDU use no more
 * memory than what they have sent.
 */
struct aw_stage *aw_stage_keep(struct aw_stage *stage);

/*
 * Makes room for a whole FPDU again after aw_stage_keep. NULL when memory is out: stage goes on
 * waiting.
 */
struct aw_stage *aw_stage_resume(struct aw_stage *stage);

/* A batch with iov_count and iov_sent 0. NULL when memory is out. */
struct aw_batch *aw_batch_get(void);
void aw_batch_put(struct aw_batch *batch);

/*
 * Checks that one stage and one batch can be had, as a new stream needs; false when memory is out.
 */
bool aw_pool_warm(void);

/* The number of batches in use. */
unsigned int aw_batches_out(void);

/*
 * Copies the unsent parts of [start, start + len) into the arena, so that the program may free that
 * memory.
 */
void aw_batch_unlend(struct aw_batch *batch, const void *start, size_t len);

/* Frees all kept buffers. Called as the engine stops. */
void aw_pool_flush(void);

/* Around a fork, so that parent and child both have consistent lists. */
void aw_pool_fork_prepare(void);
void aw_pool_fork_done(void);

#endif
