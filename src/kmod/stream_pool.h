// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Buffers that a stream borrows while octets are under way: a stage for what came in, a batch for what
// goes out. An idle stream holds neither; freed ones are kept warm for the next.
#ifndef KMOD_STREAM_POOL_H
#define KMOD_STREAM_POOL_H

#include "core/tx.h"
#include "wire/fpdu.h"

#include <linux/build_bug.h>
#include <linux/list.h>
#include <linux/types.h>

/* Room for the rest of one FPDU, which is less than that, and as much again. */
#define AWK_STAGE_OCTETS (2 * FPDU_MAX)
/* A batch's octets: pages in one piece, of which TCP may keep some. */
#define AWK_ARENA_OCTETS (128u * 1024)
static_assert(AWK_ARENA_OCTETS >= AW_TX_ARENA_MIN);

struct awk_stage {
	struct list_head spare; /* the pool's */
	size_t at; /* the first octet not used yet */
	size_t len; /* of those */
	u8 buf[AWK_STAGE_OCTETS];
};

/* What a stage held of an FPDU whose rest does not come: no more memory than that. */
struct awk_packed {
	size_t len;
	u8 octets[];
};

struct awk_batch {
	struct list_head spare; /* the pool's, while nobody has the batch */
	struct page *pages; /* the arena's; NULL where that is no piece of memory, and is copied */
	u8 *arena;
	size_t len;
	size_t sent;
};

/* Of the warm ones, in any context; NULL when there is none. Empty. */
struct awk_stage *awk_stage_try(void);
/* The same, which may sleep for memory, without recursion into I/O. */
struct awk_stage *awk_stage_get(void);
struct awk_batch *awk_batch_get(void);
/* All was sent: another arena where TCP still has this one. False where there is no memory for it. May sleep. */
bool awk_batch_renew(struct awk_batch *batch);
/* Any context but a hard interrupt; NULL is let be. */
void awk_stage_put(struct awk_stage *stage);
void awk_batch_put(struct awk_batch *batch);

/* Moves a stage's octets, which are less than FPDU_MAX, out of it or into an empty one. NULL: no memory. Any context. */
struct awk_packed *awk_stage_pack(struct awk_stage *stage);
void awk_stage_unpack(struct awk_stage *stage, struct awk_packed *packed);

/* Sees to a warm stage, as softirqs cannot allocate one. */
void awk_pool_warm(void);

/* Frees what is warm, as the module goes. */
void awk_pool_flush(void);

#endif
