// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Free lists, last in first out, so that a buffer that is handed out is warm in the cache. A thread that receives or sends again
// and again finds its stage and its batch in a lane, without the lists' lock.
#include "net/mem/pool.h"

#include "net/mem/guard.h"
#include "ring/lock.h"

#include <assert.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_MAX 16 /* of each kind; more are freed */
#define LANES 16
#define CACHE_LINE 64

_Static_assert(AW_STAGE_BYTES >= 2 * FPDU_MAX, "a stage holds a whole FPDU behind a partial one");
_Static_assert(AW_STAGE_COPY_MAX < FPDU_MAX, "a stage that is not copied holds any FPDU");
_Static_assert(AW_BATCH_IOV >= AW_TX_IOV_MIN, "a batch holds any FPDU");

struct shelf {
	struct aw_stage *first;
	unsigned int count;
};

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static struct shelf large AW_GUARDED_BY(lock), small
	AW_GUARDED_BY(lock); /* stages of AW_STAGE_BYTES, and of FPDU_MAX */
static unsigned int large_out AW_GUARDED_BY(lock); /* in use, with a QP or in a lane */
static struct aw_batch *batches AW_GUARDED_BY(lock);
/* Those out are of the lists: a lane's own says itself that it is out. */
static unsigned int batches_kept AW_GUARDED_BY(lock), batches_out AW_GUARDED_BY(lock);

/* Threads have a lane each; beyond LANES some share one. */
static struct aw_lane {
	alignas(CACHE_LINE) struct aw_stage *_Atomic stage; /* a large one or NULL */
	struct aw_batch *_Atomic batch; /* its own; BATCH_OUT: in use; NULL: there is none */
} lanes[LANES];
#define BATCH_OUT ((struct aw_batch *)(void *)lanes) /* the address of no batch */
static _Atomic unsigned int threads;
static _Thread_local unsigned int thread_number
	__attribute__((tls_model("initial-exec"))); /* from 1 */

static struct aw_lane *own_lane(void)
{
	if (thread_number == 0)
		thread_number = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed);
	return &lanes[thread_number % LANES];
}

/* Acquire and release: who takes a stage sees what the thread that left it there has written. */
static struct aw_stage *take_from_lane(struct aw_lane *lane)
{
	if (!atomic_load_explicit(&lane->stage, memory_order_relaxed))
		return NULL;
	return atomic_exchange_explicit(&lane->stage, NULL, memory_order_acquire);
}

static bool put_in_lane(struct aw_lane *lane, struct aw_stage *stage)
{
	struct aw_stage *none = NULL;

	return atomic_compare_exchange_strong_explicit(&lane->stage, &none, stage,
						       memory_order_release, memory_order_relaxed);
}

/* One that another thread's lane has, for when all places are taken. */
static struct aw_stage *take_from_any_lane(void)
{
	struct aw_stage *stage = NULL;

	for (int i = 0; i < LANES && !stage; i++)
		stage = take_from_lane(&lanes[i]);
	return stage;
}

static struct aw_stage *make_stage(size_t size)
{
	struct aw_stage *stage = malloc(sizeof(*stage) + size);

	if (stage)
		stage->size = (uint32_t)size;
	return stage;
}

static struct aw_stage *take_from(struct shelf *shelf) AW_REQUIRES(lock)
{
	struct aw_stage *stage = shelf->first;

	if (stage) {
		shelf->first = stage->next;
		shelf->count--;
	}
	return stage;
}

static bool put_on(struct shelf *shelf, struct aw_stage *stage) AW_REQUIRES(lock)
{
	if (shelf->count >= KEEP_MAX)
		return false;
	stage->next = shelf->first;
	shelf->first = stage;
	shelf->count++;
	return true;
}

static void clear(struct shelf *shelf) AW_REQUIRES(lock)
{
	for (struct aw_stage *stage; (stage = take_from(shelf));)
		free(stage);
}

/* Of the lists, or a new one. */
static struct aw_stage *get_from_lists(void)
{
	aw_lock(&lock);
	bool has_place = large_out < AW_STAGES_LARGE_MAX;
	struct aw_stage *stage = has_place ? take_from(&large) : take_from_any_lane();

	if (!stage && !has_place)
		stage = take_from(&small);
	large_out += has_place;
	aw_unlock(&lock);
	if (!stage)
		stage = make_stage(has_place ? AW_STAGE_BYTES : FPDU_MAX);
	if (!stage && has_place) {
		aw_lock(&lock);
		large_out--;
		aw_unlock(&lock);
	}
	/* Memory is out: what another thread has at hand is of more use here. */
	return stage ? stage : take_from_any_lane();
}

struct aw_stage *aw_stage_get(void)
{
	struct aw_stage *stage = take_from_lane(own_lane());

	if (!stage)
		stage = get_from_lists();
	if (stage)
		stage->len = 0;
	return stage;
}

static void put_on_lists(struct aw_stage *stage)
{
	bool is_large = stage->size == AW_STAGE_BYTES;
	bool is_kept = false;

	aw_lock(&lock);
	large_out -= is_large;
	if (is_large || stage->size == FPDU_MAX)
		is_kept = put_on(is_large ? &large : &small, stage);
	aw_unlock(&lock);
	if (!is_kept)
		free(stage);
}

void aw_stage_put(struct aw_stage *stage)
{
	if (stage->size != AW_STAGE_BYTES || !put_in_lane(own_lane(), stage))
		put_on_lists(stage);
}

/* Moves the waiting bytes from one stage to another. */
static struct aw_stage *move_rest(struct aw_stage *to, struct aw_stage *from)
{
	to->len = from->len;
	memcpy(to->buf, from->buf, from->len);
	aw_stage_put(from);
	return to;
}

struct aw_stage *aw_stage_keep(struct aw_stage *stage)
{
	struct aw_stage *tight;

	if (stage->len > AW_STAGE_COPY_MAX)
		return stage;
	if (stage->size == AW_STAGE_BYTES) {
		aw_lock(&lock);
		bool has_places = large_out < AW_STAGES_LARGE_MAX;

		aw_unlock(&lock);
		/* While large stages are left, emptying one is not worth the copy. */
		if (has_places)
			return stage;
	}
	tight = make_stage(stage->len);
	return tight ? move_rest(tight, stage) : stage;
}

struct aw_stage *aw_stage_resume(struct aw_stage *stage)
{
	struct aw_stage *whole;

	if (stage->size >= FPDU_MAX)
		return stage;
	whole = aw_stage_get();
	return whole ? move_rest(whole, stage) : NULL;
}

/* Of the lists, or a new one. counts: no lane will say that it is out. */
static struct aw_batch *batch_from_lists(bool counts)
{
	aw_lock(&lock);
	struct aw_batch *batch = batches;

	if (batch) {
		batches = batch->next;
		batches_kept--;
	}
	batches_out += counts;
	aw_unlock(&lock);
	if (!batch)
		batch = malloc(sizeof(*batch));
	if (!batch && counts) {
		aw_lock(&lock);
		batches_out--;
		aw_unlock(&lock);
	}
	return batch;
}

/*
 * Acquire: pairs with the release in aw_batch_put. From here on the lane says that the batch is out: a thread that
 * deregisters a region sees that if this one has found the region, since it then waits for this one to let go of it.
 */
struct aw_batch *aw_batch_get(void)
{
	struct aw_lane *lane = own_lane();
	struct aw_batch *batch =
		atomic_exchange_explicit(&lane->batch, BATCH_OUT, memory_order_acquire);

	if (!batch || batch == BATCH_OUT) {
		bool is_lanes = !batch;

		batch = batch_from_lists(!is_lanes);
		if (batch)
			batch->lane = is_lanes ? lane : NULL;
		else if (is_lanes)
			atomic_store_explicit(&lane->batch, NULL, memory_order_relaxed);
	}
	if (batch)
		batch->iov_count = batch->iov_sent = 0;
	return batch;
}

void aw_batch_put(struct aw_batch *batch)
{
	if (batch->lane) {
		atomic_store_explicit(&batch->lane->batch, batch, memory_order_release);
		return;
	}
	aw_lock(&lock);
	batches_out--;
	if (batches_kept < KEEP_MAX) {
		batch->next = batches;
		batches = batch;
		batches_kept++;
		batch = NULL;
	}
	aw_unlock(&lock);
	free(batch);
}

bool aw_pool_warm(void)
{
	struct aw_stage *stage = aw_stage_get();
	struct aw_batch *batch = aw_batch_get();
	bool both = stage && batch;

	if (stage)
		aw_stage_put(stage);
	if (batch)
		aw_batch_put(batch);
	return both;
}

unsigned int aw_batches_out(void)
{
	aw_lock(&lock);
	unsigned int out = batches_out;

	aw_unlock(&lock);
	for (int i = 0; i < LANES; i++)
		out += atomic_load_explicit(&lanes[i].batch, memory_order_relaxed) == BATCH_OUT;
	return out;
}

static bool in_arena(const struct aw_batch *batch, const struct aw_iov *iov)
{
	return (uintptr_t)iov->base - (uintptr_t)batch->arena < sizeof(batch->arena);
}

static bool overlaps(const struct aw_iov *iov, const void *start, size_t len)
{
	uintptr_t p = (uintptr_t)iov->base, other = (uintptr_t)start;

	return p < other ? other - p < iov->len && len > 0 : p - other < len;
}

/* The arena has the room: it could hold every byte of a batch. */
void aw_batch_unlend(struct aw_batch *batch, const void *start, size_t len)
{
	uint8_t *end = batch->arena; /* its first free byte */

	for (unsigned int i = 0; i < batch->iov_count; i++) {
		const struct aw_iov *iov = &batch->iov[i];

		if (in_arena(batch, iov) && (uint8_t *)iov->base + iov->len > end)
			end = (uint8_t *)iov->base + iov->len;
	}
	for (unsigned int i = batch->iov_sent; i < batch->iov_count; i++) {
		struct aw_iov *iov = &batch->iov[i];

		if (in_arena(batch, iov) || !overlaps(iov, start, len))
			continue;
		assert(iov->len <= (size_t)(batch->arena + sizeof(batch->arena) - end));
		/* When the memory is gone already, the socket's send will fail. */
		if (!aw_guard_gather(end, iov->base, iov->len))
			continue;
		iov->base = end;
		end += iov->len;
	}
}

/* Of lanes. One that is out comes back to its lane. */
static void free_batches(void)
{
	for (int i = 0; i < LANES; i++) {
		struct aw_batch *batch =
			atomic_load_explicit(&lanes[i].batch, memory_order_relaxed);

		if (batch && batch != BATCH_OUT &&
		    atomic_compare_exchange_strong_explicit(&lanes[i].batch, &batch, NULL,
							    memory_order_acquire,
							    memory_order_relaxed))
			free(batch);
	}
}

void aw_pool_flush(void)
{
	for (struct aw_stage *stage; (stage = take_from_any_lane());)
		put_on_lists(stage);
	free_batches();
	aw_lock(&lock);
	clear(&large);
	clear(&small);
	while (batches) {
		struct aw_batch *next = batches->next;

		free(batches);
		batches = next;
	}
	batches_kept = 0;
	aw_unlock(&lock);
}

void aw_pool_fork_prepare(void) AW_ACQUIRE(lock)
{
	aw_lock(&lock);
}

void aw_pool_fork_done(void) AW_RELEASE(lock)
{
	aw_unlock(&lock);
}
