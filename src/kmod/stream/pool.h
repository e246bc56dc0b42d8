// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Buffers that a stream borrows while bytes are under way: a stage for those that came in, a batch
// for those that go out. An idle stream holds neither; freed ones are kept warm for the next.
#ifndef KMOD_STREAM_POOL_H
#define KMOD_STREAM_POOL_H

#include "core/tx.h"
#include "wire/fpdu.h"

#include <linux/build_bug.h>
#include <linux/list.h>
#include <linux/types.h>

/*
 * Room for the rest of one FPDU, which is less than that, and nearly as much again. With its fields in
 * front a stage is no larger than 128 KiB: of a larger one kmalloc would make 256.
 */
#define AWK_STAGE_BYTES (128u * 1024 - 64)
static_assert(AWK_STAGE_BYTES >= FPDU_MAX);
/* The bytes of a batch: pages in one piece, of which TCP may keep some. */
#define AWK_ARENA_BYTES (128u * 1024)
static_assert(AWK_ARENA_BYTES >= AW_TX_ARENA_MIN);

struct awk_stage {
	struct list_head spare; /* the pool's */
	size_t at; /* index of the first byte that is not used yet */
	size_t len; /* the number of bytes that are not used yet */
	u8 buf[AWK_STAGE_BYTES];
};
static_assert(sizeof(struct awk_stage) <= 128u * 1024);

/* The bytes that a stage held of an FPDU whose rest does not come: no more memory than that. */
struct awk_packed {
	size_t len;
	u8 octets[];
};

struct awk_batch {
	struct list_head spare; /* in the pool, while no stream has the batch */
	/* the arena's; NULL when that is not one piece of memory, and TCP copies it */
	struct page *pages;
	u8 *arena;
	size_t len;
	size_t sent;
	/* for the core, while it fills the arena; no stack has to be cleared for it each time */
	struct aw_iov iov[AW_TX_IOV_MIN];
};

/* An empty one from the pool, in any context; NULL when there is none. */
struct awk_stage *awk_stage_try(void);
struct awk_batch *awk_batch_try(void);
/* As try, but may sleep for memory, without recursion into I/O. */
struct awk_stage *awk_stage_get(void);
struct awk_batch *awk_batch_get(void);
/*
 * Called when all was sent: gets another arena if TCP still has this one. False when memory is out.
 * May sleep.
 */
bool awk_batch_renew(struct awk_batch *batch);
/* Any context but a hard interrupt; NULL is allowed. */
void awk_stage_put(struct awk_stage *stage);
void awk_batch_put(struct awk_batch *batch);

/*
 * Moves a stage's bytes, fewer than FPDU_MAX, out of it or into an empty one. NULL: memory is out.
 * Any context.
 */
struct awk_packed *awk_stage_pack(struct awk_stage *stage);
void awk_stage_unpack(struct awk_stage *stage, struct awk_packed *packed);

/* Makes sure that there is a warm stage, because softirqs cannot allocate one. */
void awk_pool_warm(void);

/* Called for each stream that begins: one warm batch more, up to the pool's bound, for threads that may not sleep. */
void awk_pool_grow(void);

/* Frees the warm buffers, as the module goes. */
void awk_pool_flush(void);

#endif
