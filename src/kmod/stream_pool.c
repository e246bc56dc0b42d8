// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two pools of one kind: free lists with a bound, behind them the kernel's allocator.
#include "kmod/stream_pool.h"

#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#define WARM_MAX 32 /* of each kind: 4 MiB and 6 MiB */

/* In a buffer that is free. */
struct spare {
	struct spare *next;
};

struct pool {
	spinlock_t lock; /* bh, innermost; guards what follows */
	struct spare *first;
	unsigned int count;
};

static struct pool stages = { .lock = __SPIN_LOCK_UNLOCKED(stages.lock) };
static struct pool batches = { .lock = __SPIN_LOCK_UNLOCKED(batches.lock) };

static void *pool_try(struct pool *pool)
{
	struct spare *spare;

	spin_lock_bh(&pool->lock);
	spare = pool->first;
	if (spare) {
		pool->first = spare->next;
		pool->count--;
	}
	spin_unlock_bh(&pool->lock);
	return spare;
}

static void *pool_get(struct pool *pool, size_t size)
{
	void *buf = pool_try(pool);
	unsigned int flags;

	if (buf)
		return buf;
	flags = memalloc_noio_save();
	buf = kvmalloc(size, GFP_KERNEL);
	memalloc_noio_restore(flags);
	return buf;
}

static void pool_put(struct pool *pool, void *buf)
{
	struct spare *spare = buf;
	bool kept;

	if (!buf)
		return;
	spin_lock_bh(&pool->lock);
	kept = pool->count < WARM_MAX;
	if (kept) {
		spare->next = pool->first;
		pool->first = spare;
		pool->count++;
	}
	spin_unlock_bh(&pool->lock);
	if (!kept)
		kvfree(buf);
}

static void pool_flush(struct pool *pool)
{
	void *buf;

	while ((buf = pool_try(pool)))
		kvfree(buf);
}

static struct awk_stage *stage_begin(struct awk_stage *stage)
{
	if (stage)
		stage->at = stage->len = 0;
	return stage;
}

struct awk_stage *awk_stage_try(void)
{
	return stage_begin(pool_try(&stages));
}

struct awk_stage *awk_stage_get(void)
{
	return stage_begin(pool_get(&stages, sizeof(struct awk_stage)));
}

struct awk_batch *awk_batch_get(void)
{
	struct awk_batch *batch = pool_get(&batches, sizeof(*batch));

	if (batch)
		batch->iov_count = batch->iov_sent = 0;
	return batch;
}

void awk_stage_put(struct awk_stage *stage)
{
	pool_put(&stages, stage);
}

void awk_batch_put(struct awk_batch *batch)
{
	pool_put(&batches, batch);
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

void awk_pool_flush(void)
{
	pool_flush(&stages);
	pool_flush(&batches);
}
