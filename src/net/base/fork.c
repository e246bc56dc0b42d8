// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The handlers of a fork, by rank.
#include "net/base/fork.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/log.h"
#include "net/base/io_now.h"
#include "ring/lock.h"

static const struct aw_fork_handlers *_Atomic registered[AW_FORK_RANKS];
/* A fork holds the lock from its first handler to its last; it calls for an end those that it has called to prepare. */
static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static const struct aw_fork_handlers *prepared[AW_FORK_RANKS] AW_GUARDED_BY(lock);
uint32_t aw_fork_generation_now;
static int cancel AW_GUARDED_BY(lock); /* the forking thread's state before the fork */
static _Thread_local bool unprepared; /* this thread's fork has called no handlers */
static bool torn; /* this process, or one that it comes from, is the child of such a fork */

void aw_fork_register(enum aw_fork_rank rank, const struct aw_fork_handlers *handlers)
{
	atomic_store(&registered[rank], handlers);
}

int aw_fork_check(void)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;

	if (!torn)
		return 0;
	if (!atomic_flag_test_and_set(&told))
		aw_log(AW_LOG_ERROR,
		       "this process was forked in a signal handler that had interrupted the verbs library: it cannot use verbs "
		       "before it calls execve");
	return EDEADLK;
}

/* Unchecked, as all that runs around a fork: the locks are those that the handlers name. */
static void begin(const struct aw_fork_handlers *handlers) AW_UNCHECKED
{
	if (handlers->prepare)
		handlers->prepare();
	if (handlers->lock)
		aw_lock(handlers->lock);
}

static void end(void (*fn)(void), aw_mutex *taken) AW_UNCHECKED
{
	if (fn)
		fn();
	if (taken)
		aw_unlock(taken);
}

/*
 * A signal handler that forks may have interrupted its thread where that holds a lock. The handlers would wait for that lock, or for
 * another one whose holder waits for it.
 */
static void prepare(void) AW_UNCHECKED
{
	unprepared = aw_locks_held > 0 || torn;
	if (unprepared)
		return;
	int state = aw_cancel_disable();

	aw_lock(&lock);
	cancel = state;
	for (int rank = 0; rank < AW_FORK_RANKS; rank++) {
		prepared[rank] = atomic_load(&registered[rank]);
		if (prepared[rank])
			begin(prepared[rank]);
	}
}

static void finish(void) AW_RELEASE(lock)
{
	int state = cancel;

	aw_unlock(&lock);
	aw_cancel_restore(state);
}

static void parent(void) AW_UNCHECKED
{
	if (unprepared)
		return;
	for (int rank = AW_FORK_RANKS - 1; rank >= 0; rank--)
		if (prepared[rank])
			end(prepared[rank]->parent, prepared[rank]->lock);
	finish();
}

static void child(void) AW_UNCHECKED
{
	aw_fork_generation_now++;
	if (unprepared) {
		torn = true;
		for (int rank = 0; rank < AW_FORK_RANKS; rank++) {
			const struct aw_fork_handlers *handlers = atomic_load(&registered[rank]);

			if (handlers && handlers->torn)
				handlers->torn();
		}
		return;
	}
	for (int rank = AW_FORK_RANKS - 1; rank >= 0; rank--)
		if (prepared[rank])
			end(prepared[rank]->child, prepared[rank]->lock);
	finish();
}

/* The program's own handlers come behind it and so run outside of the library's locks. */
static __attribute__((constructor)) void register_at_libc(void)
{
	int err = pthread_atfork(prepare, parent, child);

	if (err)
		aw_log(AW_LOG_ERROR, "pthread_atfork: %s: a child of fork cannot use verbs",
		       strerror(err));
}
