// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Handles to objects: a look-up that takes no lock and holds what it finds. STags, QP numbers,
// watches and cm ids are handles. A slot's word counts references, and its bits tell the slot's state. The
// object is released by the thread that clears OWNED while there are no references, or by the one
// that drops the last reference after that; AWAITED: by the thread that waits for it. That happens
// once, because each step is one atomic operation on the one word.
#ifndef RING_TABLE_H
#define RING_TABLE_H

#include "base/thread_safety.h"
#include "base/tsan.h"
#include "ring/lock.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define AW_TABLE_CHUNK 1024
#define AW_TABLE_NONE UINT32_MAX
#define AW_TABLE_STRIDE 64 /* a cache line */

/* Of a slot's word. */
enum {
	AW_TABLE_REFERENCES = 0x0fffffff,
	AW_TABLE_FORKED = 0x10000000, /* was held at a fork: some references may never be put */
	/* a thread in aw_table_remove_wait sleeps on the word and releases the object itself */
	AW_TABLE_AWAITED = 0x20000000,
	AW_TABLE_OWNED = 0x40000000, /* inserted and not removed */
};
#define AW_TABLE_LIVE 0x80000000u /* aw_table_get may find it */

struct aw_table_slot {
	_Atomic uint32_t word;
	uint32_t next_free;
	void *_Atomic object;
	void (*release)(void *object);
	/* The words of two slots are in different cache lines: threads that hold neighbours do not disturb each other. */
	uint8_t apart[AW_TABLE_STRIDE - 2 * sizeof(uint32_t) - 2 * sizeof(void *)];
};

struct aw_table {
	uint32_t capacity; /* handles: a multiple of AW_TABLE_CHUNK */
	struct aw_table_slot *_Atomic *chunks; /* published once, freed by fini */
	struct aw_latch lock; /* guards what follows */
	uint32_t used; /* handles ever given out */
	uint32_t free_head, free_tail; /* oldest freed first, so that handles rest before reuse */
	uint32_t count; /* handles that are not free */
};

/* 0, or ENOMEM. capacity is rounded up to whole chunks; memory grows a chunk at a time. */
int aw_table_init(struct aw_table *t, uint32_t capacity);
/* Nothing may be live. */
void aw_table_fini(struct aw_table *t);

/*
 * A handle for object, live at once; AW_TABLE_NONE when the table is full or memory is out. release
 * may be NULL; else it is called once, by the thread that drops the last reference after
 * aw_table_remove.
 */
uint32_t aw_table_insert(struct aw_table *t, void *object, void (*release)(void *object));

/*
 * aw_table_insert in two steps, for objects that must know their handle before any look-up can find
 * them. A reserved handle is published, or else given back by cancel.
 */
uint32_t aw_table_reserve(struct aw_table *t);
void aw_table_publish(struct aw_table *t, uint32_t handle, void *object,
		      void (*release)(void *object));
void aw_table_cancel(struct aw_table *t, uint32_t handle);

/* NULL when the handle was never given out. handle may be any number. */
static inline struct aw_table_slot *aw_table_slot_of(struct aw_table *t, uint32_t handle)
{
	struct aw_table_slot *chunk;

	if (handle >= t->capacity)
		return NULL;
	/* Acquire: pairs with the release store in grow. */
	chunk = atomic_load_explicit(&t->chunks[handle / AW_TABLE_CHUNK], memory_order_acquire);
	return chunk ? &chunk[handle % AW_TABLE_CHUNK] : NULL;
}

/* A slot's object, held; NULL when it is not live. A message holds several, and puts them. */
static inline void *aw_table_slot_get(struct aw_table_slot *slot)
{
	uint32_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);

	do {
		if (!(word & AW_TABLE_LIVE))
			return NULL;
		assert((word & AW_TABLE_REFERENCES) < AW_TABLE_REFERENCES);
		/* Acquire: pairs with the release in aw_table_publish. */
	} while (!atomic_compare_exchange_weak_explicit(
		&slot->word, &word, word + 1, memory_order_acquire, memory_order_relaxed));
	aw_tsan_acquire(slot);
	return atomic_load_explicit(&slot->object, memory_order_relaxed);
}

/* 0; else the reference was the last behind the end of the slot's life: aw_table_put_last follows, with the word returned. */
static inline uint32_t aw_table_slot_put(struct aw_table_slot *slot)
{
	aw_tsan_release(slot);
	/*
	 * Release: this thread's use of the object comes before its end, in finish or behind
	 * aw_table_remove_wait. Acquire: when finish runs in this thread, so does all other threads'
	 * use. Both pair with each other, with remove_bits and with the load in
	 * unpublish_wait.
	 */
	uint32_t old = atomic_fetch_sub_explicit(&slot->word, 1, memory_order_acq_rel);

	assert(old & AW_TABLE_REFERENCES);
	return (old & (AW_TABLE_REFERENCES | AW_TABLE_OWNED)) == 1 ? old : 0;
}

void aw_table_put_last(struct aw_table *t, uint32_t handle, uint32_t word);

/* The object, held; NULL when the handle is not live. handle may be any number. */
static inline void *aw_table_get(struct aw_table *t, uint32_t handle)
{
	struct aw_table_slot *slot = aw_table_slot_of(t, handle);

	return slot ? aw_table_slot_get(slot) : NULL;
}

static inline void aw_table_put(struct aw_table *t, uint32_t handle)
{
	uint32_t last = aw_table_slot_put(aw_table_slot_of(t, handle));

	if (last)
		aw_table_put_last(t, handle, last);
}

/*
 * From now on aw_table_get finds nothing, though the handle stays taken. The caller holds it, or
 * knows that it is published.
 */
void aw_table_hide(struct aw_table *t, uint32_t handle);

/*
 * Takes publish back: returns when no reference is left (the caller must hold none), and the handle
 * is a reserved one again. release is not called.
 */
void aw_table_withdraw_wait(struct aw_table *t, uint32_t handle);

/* From now on aw_table_get finds nothing. release runs when the last reference goes (now, if none). */
void aw_table_remove(struct aw_table *t, uint32_t handle);

/* As aw_table_remove, but returns only when no reference is left; the caller must hold none. */
void aw_table_remove_wait(struct aw_table *t, uint32_t handle);

/* The end of a walk over all handles: none from here on was ever given out. */
uint32_t aw_table_end(struct aw_table *t);

/* The same in the child of a fork, which has one thread: takes no lock. */
uint32_t aw_table_end_of_child(const struct aw_table *t);

/*
 * A walk up to end: the first object from *handle on, held, with its handle; NULL: none is left.
 * Objects inserted meanwhile may be missed.
 */
void *aw_table_walk(struct aw_table *t, uint32_t *handle, uint32_t end);

/*
 * For pthread_atfork. In the child, references of threads that are gone are never put:
 * aw_table_remove_wait does not wait for those, and release does not run.
 */
void aw_table_fork_prepare(struct aw_table *t) AW_ACQUIRE(t->lock);
void aw_table_fork_parent(struct aw_table *t) AW_RELEASE(t->lock);
void aw_table_fork_child(struct aw_table *t) AW_RELEASE(t->lock);

#endif
