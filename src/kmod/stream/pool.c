// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two pools of one kind: free lists with a bound, behind them the kernel's allocator.
#include "kmod/stream/pool.h"

#include <linux/list.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#define WARM_MAX 32 /* of each kind: 4 MiB each */

struct pool {
	spinlock_t lock; /* bh, innermost; guards what follows */
	struct list_head spares;
	unsigned int count;
};

#define POOL(name)                                                                             \
	{                                                                                      \
		.lock = __SPIN_LOCK_UNLOCKED(name.lock), .spares = LIST_HEAD_INIT(name.spares) \
	}

static struct pool stages = POOL(stages);
static struct pool batches = POOL(batches);

static struct list_head *pool_try(struct pool *pool)
{
	struct list_head *spare = NULL;

	spin_lock_bh(&pool->lock);
	if (pool->count > 0) {
		spare = pool->spares.next;
		list_del(spare);
		pool->count--;
	}
	spin_unlock_bh(&pool->lock);
	return spare;
}

/* False when the pool is full: then the caller frees it. */
static bool pool_put(struct pool *pool, struct list_head *spare, bool first)
{
	bool kept;

	spin_lock_bh(&pool->lock);
	kept = pool->count < WARM_MAX;
	if (kept) {
		list_add(spare, first ? &pool->spares : pool->spares.prev);
		pool->count++;
	}
	spin_unlock_bh(&pool->lock);
	return kept;
}

static struct awk_stage *stage_of(struct list_head *spare)
{
	return spare ? list_entry(spare, struct awk_stage, spare) : NULL;
}

static struct awk_batch *batch_of(struct list_head *spare)
{
	return spare ? list_entry(spare, struct awk_batch, spare) : NULL;
}

static struct awk_stage *stage_begin(struct awk_stage *stage)
{
	if (stage)
		stage->at = stage->len = 0;
	return stage;
}

struct awk_stage *awk_stage_try(void)
{
	return stage_begin(stage_of(pool_try(&stages)));
}

struct awk_stage *awk_stage_get(void)
{
	struct awk_stage *stage = awk_stage_try();
	unsigned int flags;

	if (stage)
		return stage;
	flags = memalloc_noio_save();
	stage = kvmalloc(sizeof(*stage), GFP_KERNEL);
	memalloc_noio_restore(flags);
	return stage_begin(stage);
}

void awk_stage_put(struct awk_stage *stage)
{
	if (stage && !pool_put(&stages, &stage->spare, true))
		kvfree(stage);
}

/* When memory is in pieces the arena is, too, and TCP must not keep it. */
static void arena_get(struct awk_batch *batch)
{
	unsigned int flags = memalloc_noio_save();

	batch->pages = alloc_pages(GFP_KERNEL | __GFP_COMP | __GFP_NOWARN | __GFP_NORETRY,
				   get_order(AWK_ARENA_BYTES));
	batch->arena = batch->pages ? page_address(batch->pages)
				    : kvmalloc(AWK_ARENA_BYTES, GFP_KERNEL);
	memalloc_noio_restore(flags);
}

static void arena_put(struct awk_batch *batch)
{
	if (batch->pages)
		put_page(batch->pages);
	else
		kvfree(batch->arena);
}

/*
 * True when only the batch holds the pages. A holder of them takes no further reference, so that
 * stays true.
 */
static bool arena_is_free(const struct awk_batch *batch)
{
	return !batch->pages || page_ref_count(batch->pages) == 1;
}

static void batch_free(struct awk_batch *batch)
{
	arena_put(batch);
	kfree(batch);
}

static struct awk_batch *batch_create(void)
{
	struct awk_batch *batch = kzalloc(sizeof(*batch), GFP_NOIO);

	if (!batch)
		return NULL;
	arena_get(batch);
	if (batch->arena)
		return batch;
	kfree(batch);
	return NULL;
}

/* The first batch of the pool is free, or is the one that TCP has had for the longest time. */
struct awk_batch *awk_batch_try(void)
{
	struct awk_batch *batch = batch_of(pool_try(&batches));

	if (batch && !arena_is_free(batch)) {
		awk_batch_put(batch);
		return NULL;
	}
	if (batch)
		batch->len = batch->sent = 0;
	return batch;
}

struct awk_batch *awk_batch_get(void)
{
	struct awk_batch *batch = awk_batch_try();

	return batch ? batch : batch_create();
}

void awk_batch_put(struct awk_batch *batch)
{
	if (batch && !pool_put(&batches, &batch->spare, arena_is_free(batch)))
		batch_free(batch);
}

bool awk_batch_renew(struct awk_batch *batch)
{
	struct awk_batch *other = arena_is_free(batch) ? batch : awk_batch_get();

	if (!other)
		return false;
	if (other == batch)
		return true;
	swap(batch->pages, other->pages);
	swap(batch->arena, other->arena);
	awk_batch_put(other);
	return true;
}

struct awk_packed *awk_stage_pack(struct awk_stage *stage)
{
	struct awk_packed *packed =
		kmalloc(struct_size(packed, octets, stage->len), GFP_ATOMIC | __GFP_NOWARN);

	if (!packed)
		return NULL;
	packed->len = stage->len;
	memcpy(packed->octets, stage->buf + stage->at, stage->len);
	awk_stage_put(stage);
	return packed;
}

void awk_stage_unpack(struct awk_stage *stage, struct awk_packed *packed)
{
	stage->at = 0;
	stage->len = packed->len;
	memcpy(stage->buf, packed->octets, packed->len);
	kfree(packed);
}

void awk_pool_warm(void)
{
	awk_stage_put(awk_stage_get());
}

void awk_pool_grow(void)
{
	awk_batch_put(batch_create());
}

void awk_pool_flush(void)
{
	struct awk_stage *stage;
	struct awk_batch *batch;

	while ((stage = stage_of(pool_try(&stages))))
		kvfree(stage);
	while ((batch = batch_of(pool_try(&batches))))
		batch_free(batch);
}
