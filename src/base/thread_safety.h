// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Words by which a function names the lock that it needs, and clang checks its callers (-Wthread-safety; tools/check-locks).
//
// A lock is a pthread_mutex_t of the type aw_mutex. The words stand behind a function's parameters, where they may name these:
// void queue_push(struct queue *q, int item) AW_REQUIRES(q->lock). The analysis follows one function at a time and compares locks
// as expressions: it knows that q->lock is q->lock, but not that a second pointer means the same q. Where it cannot follow,
// aw_held says so to it and checks it at run time; AW_UNCHECKED takes a function out, and its comment says why.
// The words do not stand on members of a struct: in C, clang cannot name the lock of the same object there before its version 22.
// A comment says which members a lock guards.
#ifndef BASE_THREAD_SAFETY_H
#define BASE_THREAD_SAFETY_H

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#ifdef __clang__
#define AW_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define AW_THREAD_SAFETY(attribute)
#endif

/* The caller holds the locks, and still does after the call. */
#define AW_REQUIRES(...) AW_THREAD_SAFETY(requires_capability(__VA_ARGS__))
/* The caller does not hold the locks: the function takes them. */
#define AW_EXCLUDES(...) AW_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
/* Returns with the locks held. */
#define AW_ACQUIRE(...) AW_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
/* Is called with the locks held, and returns without. */
#define AW_RELEASE(...) AW_THREAD_SAFETY(release_capability(__VA_ARGS__))
/* Holds the locks where it returns the value, its first argument: true or false, or 0 for an errno. */
#define AW_TRY_ACQUIRE(...) AW_THREAD_SAFETY(try_acquire_capability(__VA_ARGS__))
/* The variable is used only with the lock, which is a variable, too. */
#define AW_GUARDED_BY(lock) AW_THREAD_SAFETY(guarded_by(lock))
/* The pointer may be read without the lock, and the object behind it only with the lock. */
#define AW_PT_GUARDED_BY(lock) AW_THREAD_SAFETY(pt_guarded_by(lock))
/* The function returns a pointer to the lock. */
#define AW_RETURNS_LOCK(lock) AW_THREAD_SAFETY(lock_returned(lock))
/* The function's body is not analysed; its callers are, by its other words. */
#define AW_UNCHECKED AW_THREAD_SAFETY(no_thread_safety_analysis)

typedef pthread_mutex_t aw_mutex AW_THREAD_SAFETY(capability("mutex"));

#ifdef __clang__
int pthread_mutex_lock(aw_mutex *mutex) AW_ACQUIRE(*mutex);
int pthread_mutex_unlock(aw_mutex *mutex) AW_RELEASE(*mutex);
int pthread_mutex_trylock(aw_mutex *mutex) AW_TRY_ACQUIRE(0, *mutex);
int pthread_cond_wait(pthread_cond_t *cond, aw_mutex *mutex) AW_REQUIRES(*mutex);
#endif

/*
 * The lock is held here: the analysis takes it for granted, and a build for debugging or with a sanitizer asserts that some thread
 * holds it.
 */
static inline void aw_held(aw_mutex *lock) AW_THREAD_SAFETY(assert_capability(*lock)) AW_UNCHECKED;
static inline void aw_held(aw_mutex *lock)
{
#ifdef AW_CHECK_HELD
	assert(pthread_mutex_trylock(lock) != 0);
#else
	(void)lock;
#endif
}

#endif
