// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A table's slots: taken, published, and given back behind the last reference.
#include "ring/table.h"

#include "ring/lock.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int aw_table_init(struct aw_table *t, uint32_t capacity)
{
	uint32_t chunks = capacity / AW_TABLE_CHUNK + !!(capacity % AW_TABLE_CHUNK);

	*t = (struct aw_table){
		.capacity = chunks * AW_TABLE_CHUNK,
		.chunks = calloc(chunks, sizeof(*t->chunks)),
		.free_head = AW_TABLE_NONE,
		.free_tail = AW_TABLE_NONE,
	};
	if (!t->chunks)
		return ENOMEM;
	aw_latch_init(&t->lock);
	return 0;
}

void aw_table_fini(struct aw_table *t)
{
	assert(t->count == 0);
	for (uint32_t i = 0; i < t->capacity / AW_TABLE_CHUNK; i++)
		free(atomic_load_explicit(&t->chunks[i], memory_order_relaxed));
	free(t->chunks);
	t->chunks = NULL;
	aw_latch_fini(&t->lock);
}

/* Makes the chunk at the end of the used ones. */
static bool grow(struct aw_table *t) AW_REQUIRES(t->lock)
{
	struct aw_table_slot *chunk = calloc(AW_TABLE_CHUNK, sizeof(*chunk));

	if (!chunk)
		return false;
	/* Release: pairs with the acquire load in slot_of; a reader sees zeroed words. */
	atomic_store_explicit(&t->chunks[t->used / AW_TABLE_CHUNK], chunk, memory_order_release);
	return true;
}

static uint32_t take_free(struct aw_table *t) AW_REQUIRES(t->lock)
{
	uint32_t handle = t->free_head;

	if (handle == AW_TABLE_NONE)
		return AW_TABLE_NONE;
	t->free_head = aw_table_slot_of(t, handle)->next_free;
	if (t->free_head == AW_TABLE_NONE)
		t->free_tail = AW_TABLE_NONE;
	return handle;
}

/* Unused handles of the last chunk come first: a freed one then rests for longest. */
static uint32_t take_handle(struct aw_table *t) AW_REQUIRES(t->lock)
{
	uint32_t handle;

	if (t->used % AW_TABLE_CHUNK != 0)
		return t->used++;
	handle = take_free(t);
	if (handle != AW_TABLE_NONE)
		return handle;
	if (t->used == t->capacity || !grow(t))
		return AW_TABLE_NONE;
	return t->used++;
}

uint32_t aw_table_reserve(struct aw_table *t)
{
	uint32_t handle;

	aw_lock(&t->lock);
	handle = take_handle(t);
	if (handle != AW_TABLE_NONE)
		t->count++;
	aw_unlock(&t->lock);
	return handle;
}

void aw_table_publish(struct aw_table *t, uint32_t handle, void *object,
		      void (*release)(void *object))
{
	struct aw_table_slot *slot = aw_table_slot_of(t, handle);

	atomic_store_explicit(&slot->object, object, memory_order_relaxed);
	slot->release = release;
	/*
	 * Release: pairs with the acquire in aw_table_get; a thread that finds the object sees it
	 * whole.
	 */
	aw_tsan_release(slot);
	atomic_store_explicit(&slot->word, AW_TABLE_LIVE | AW_TABLE_OWNED, memory_order_release);
}

uint32_t aw_table_insert(struct aw_table *t, void *object, void (*release)(void *object))
{
	uint32_t handle = aw_table_reserve(t);

	if (handle != AW_TABLE_NONE)
		aw_table_publish(t, handle, object, release);
	return handle;
}

static void give_back(struct aw_table *t, uint32_t handle)
{
	aw_lock(&t->lock);
	assert(t->count > 0);
	t->count--;
	aw_table_slot_of(t, handle)->next_free = AW_TABLE_NONE;
	if (t->free_tail == AW_TABLE_NONE)
		t->free_head = handle;
	else
		aw_table_slot_of(t, t->free_tail)->next_free = handle;
	t->free_tail = handle;
	aw_unlock(&t->lock);
}

void aw_table_cancel(struct aw_table *t, uint32_t handle)
{
	give_back(t, handle);
}

/* Called when no thread can reach the object any more. */
static void finish(struct aw_table *t, uint32_t handle)
{
	struct aw_table_slot *slot = aw_table_slot_of(t, handle);
	void *object = atomic_load_explicit(&slot->object, memory_order_relaxed);
	void (*release)(void *object) = slot->release;

	aw_tsan_acquire(slot);
	/* Relaxed: the lock in give_back orders it before the slot's next use. */
	atomic_store_explicit(&slot->word, 0, memory_order_relaxed);
	give_back(t, handle);
	if (release)
		release(object);
}

void aw_table_put_last(struct aw_table *t, uint32_t handle, uint32_t word)
{
	/* An awaited slot may be gone: only its address is used. */
	if (word & AW_TABLE_AWAITED)
		syscall(SYS_futex, &aw_table_slot_of(t, handle)->word, FUTEX_WAKE_PRIVATE, INT_MAX,
			NULL, NULL, 0);
	else
		finish(t, handle);
}

void aw_table_hide(struct aw_table *t, uint32_t handle)
{
	/* Relaxed: no memory is handed over; the caller's reference keeps the object. */
	uint32_t old = atomic_fetch_and_explicit(&aw_table_slot_of(t, handle)->word, ~AW_TABLE_LIVE,
						 memory_order_relaxed);

	assert(old & (AW_TABLE_REFERENCES | AW_TABLE_OWNED));
	(void)old;
}

/* Ends the slot's life in one step; returns the word as it was. */
static uint32_t remove_bits(struct aw_table_slot *slot, uint32_t awaited)
{
	uint32_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);
	uint32_t next;

	do {
		assert(word & AW_TABLE_OWNED);
		next = word & ~(AW_TABLE_LIVE | AW_TABLE_OWNED);
		if ((word & AW_TABLE_REFERENCES) && !(word & AW_TABLE_FORKED))
			next |= awaited;
		/* Acquire: pairs with the release in aw_table_put; release: with its acquire. */
	} while (!atomic_compare_exchange_weak_explicit(
		&slot->word, &word, next, memory_order_acq_rel, memory_order_relaxed));
	return word;
}

void aw_table_remove(struct aw_table *t, uint32_t handle)
{
	if (!(remove_bits(aw_table_slot_of(t, handle), 0) & AW_TABLE_REFERENCES))
		finish(t, handle);
}

/* False when there are references that are never put. */
static bool unpublish_wait(struct aw_table_slot *slot)
{
	uint32_t word = remove_bits(slot, AW_TABLE_AWAITED);

	if ((word & AW_TABLE_REFERENCES) && (word & AW_TABLE_FORKED))
		return false;
	/* Acquire: pairs with the release in aw_table_put. */
	while ((word = atomic_load_explicit(&slot->word, memory_order_acquire)) &
	       AW_TABLE_REFERENCES)
		syscall(SYS_futex, &slot->word, FUTEX_WAIT_PRIVATE, word, NULL, NULL, 0);
	aw_tsan_acquire(slot);
	return true;
}

void aw_table_remove_wait(struct aw_table *t, uint32_t handle)
{
	if (unpublish_wait(aw_table_slot_of(t, handle)))
		finish(t, handle);
}

void aw_table_withdraw_wait(struct aw_table *t, uint32_t handle)
{
	struct aw_table_slot *slot = aw_table_slot_of(t, handle);

	unpublish_wait(slot);
	/* Relaxed: unpublish_wait had the acquire; publish or cancel hands the slot on. */
	atomic_store_explicit(&slot->word, 0, memory_order_relaxed);
}

void *aw_table_walk(struct aw_table *t, uint32_t *handle, uint32_t end)
{
	void *object = NULL;

	while (*handle < end && !(object = aw_table_get(t, *handle)))
		++*handle;
	return object;
}

uint32_t aw_table_end(struct aw_table *t)
{
	uint32_t used;

	aw_lock(&t->lock);
	used = t->used;
	aw_unlock(&t->lock);
	return used;
}

uint32_t aw_table_end_of_child(const struct aw_table *t)
{
	return t->used;
}

void aw_table_fork_prepare(struct aw_table *t)
{
	aw_lock(&t->lock);
}

void aw_table_fork_parent(struct aw_table *t)
{
	aw_unlock(&t->lock);
}

void aw_table_fork_child(struct aw_table *t)
{
	for (uint32_t handle = 0; handle < t->used; handle++) {
		struct aw_table_slot *slot = aw_table_slot_of(t, handle);
		uint32_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);

		/* Relaxed: the child of a fork has one thread. */
		if (word & AW_TABLE_REFERENCES)
			atomic_store_explicit(&slot->word, word | AW_TABLE_FORKED,
					      memory_order_relaxed);
	}
	aw_unlock(&t->lock);
}
