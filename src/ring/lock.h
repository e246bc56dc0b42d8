// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The locks of the libraries. A thread counts those that it holds, or is about to take: a fork in a signal handler must not wait
// for a lock that its own thread has (net/base/fork.h). The lint lets no file of these rooms call pthread_mutex_lock(3) by itself.
//
// A latch is the lock of what every message takes: one word, at a quarter of a mutex's instructions. ThreadSanitizer, helgrind and
// DRD learn the order of a program's threads from the C library's functions alone: in a process under one of them each latch
// is a mutex.
#ifndef RING_LOCK_H
#define RING_LOCK_H

#include "base/thread_safety.h"

#include <stdatomic.h>
#include <stdint.h>

extern _Thread_local volatile uint32_t aw_locks_held __attribute__((tls_model("initial-exec")));

enum {
	AW_LATCH_FREE,
	AW_LATCH_HELD,
	AW_LATCH_AWAITED, /* held, and threads may sleep on the word */
	AW_LATCH_MUTEX, /* for ever: the latch is its mutex */
};

/* All zero is free. */
struct AW_THREAD_SAFETY(capability("mutex")) aw_latch {
	_Atomic uint32_t word;
	pthread_mutex_t mutex; /* AW_LATCH_MUTEX */
};

/* A change that threads wait for under a latch. All zero: nobody does. */
struct aw_latch_cond {
	_Atomic uint32_t wakes; /* it wraps */
	uint32_t waiters; /* guarded by the latch; a wake without any makes no system call */
};

/* init: also in the child of a fork, where a thread that only the parent has may hold the latch. */
void aw_latch_init(struct aw_latch *latch);
void aw_latch_fini(struct aw_latch *latch);

/* wait: gives the latch back until the next wake, or for less. wake: all that wait; the caller holds the latch. */
void aw_latch_wait(struct aw_latch_cond *cond, struct aw_latch *latch) AW_REQUIRES(*latch);
void aw_latch_wake(struct aw_latch_cond *cond);

/* Behind the three calls below, where the latch is not free, is awaited, or is a mutex. Unchecked, as those are. */
void aw_latch_lock_slowly(struct aw_latch *latch) AW_UNCHECKED;
void aw_latch_unlock_slowly(struct aw_latch *latch) AW_UNCHECKED;
int aw_latch_try_mutex(struct aw_latch *latch) AW_UNCHECKED;

static inline bool aw_latch_go(struct aw_latch *latch, uint32_t from, uint32_t to)
{
	/* Acquire and release pair with each other, from one holder to the next. */
	return __builtin_expect(atomic_compare_exchange_strong_explicit(&latch->word, &from, to,
									memory_order_acq_rel,
									memory_order_relaxed),
				1);
}

/* Unchecked, as are the next two: to the analysis the word is no lock. */
static inline void aw_latch_lock(struct aw_latch *latch) AW_ACQUIRE(*latch) AW_UNCHECKED;
static inline void aw_latch_lock(struct aw_latch *latch)
{
	aw_locks_held++;
	if (!aw_latch_go(latch, AW_LATCH_FREE, AW_LATCH_HELD))
		aw_latch_lock_slowly(latch);
}

static inline void aw_latch_unlock(struct aw_latch *latch) AW_RELEASE(*latch) AW_UNCHECKED;
static inline void aw_latch_unlock(struct aw_latch *latch)
{
	if (!aw_latch_go(latch, AW_LATCH_HELD, AW_LATCH_FREE))
		aw_latch_unlock_slowly(latch);
	aw_locks_held--;
}

static inline int aw_latch_trylock(struct aw_latch *latch) AW_TRY_ACQUIRE(0, *latch) AW_UNCHECKED;
static inline int aw_latch_trylock(struct aw_latch *latch)
{
	int err = 0;

	aw_locks_held++;
	if (!aw_latch_go(latch, AW_LATCH_FREE, AW_LATCH_HELD))
		err = aw_latch_try_mutex(latch);
	if (err)
		aw_locks_held--;
	return err;
}

/* As aw_held. */
static inline void aw_latch_held(struct aw_latch *latch)
	AW_THREAD_SAFETY(assert_capability(*latch)) AW_UNCHECKED;
static inline void aw_latch_held(struct aw_latch *latch)
{
#ifdef AW_CHECK_HELD
	assert(!aw_latch_go(latch, AW_LATCH_FREE, AW_LATCH_HELD) && aw_latch_try_mutex(latch) != 0);
#else
	(void)latch;
#endif
}

static inline void aw_mutex_lock(aw_mutex *lock) AW_ACQUIRE(*lock)
{
	aw_locks_held++;
	pthread_mutex_lock(lock);
}

static inline void aw_mutex_unlock(aw_mutex *lock) AW_RELEASE(*lock)
{
	pthread_mutex_unlock(lock);
	aw_locks_held--;
}

static inline int aw_mutex_trylock(aw_mutex *lock) AW_TRY_ACQUIRE(0, *lock)
{
	aw_locks_held++;
	int err = pthread_mutex_trylock(lock);

	if (err)
		aw_locks_held--;
	return err;
}

/* Of a latch or of a mutex. trylock: 0, or EBUSY. */
#define aw_lock(lock) \
	_Generic((lock), struct aw_latch * : aw_latch_lock, aw_mutex * : aw_mutex_lock)(lock)
#define aw_unlock(lock) \
	_Generic((lock), struct aw_latch * : aw_latch_unlock, aw_mutex * : aw_mutex_unlock)(lock)
#define aw_trylock(lock) \
	_Generic((lock), struct aw_latch * : aw_latch_trylock, aw_mutex * : aw_mutex_trylock)(lock)

#endif
