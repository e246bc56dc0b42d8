// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The locks of the libraries. A thread counts those that it holds, or is about to take: a fork in a signal handler must not wait
// for a lock that its own thread has (net/base/fork.h). The lint lets no file of these rooms call pthread_mutex_lock(3) by itself.
#ifndef RING_LOCK_H
#define RING_LOCK_H

#include <stdint.h>

#include "base/thread_safety.h"

extern _Thread_local volatile uint32_t aw_locks_held __attribute__((tls_model("initial-exec")));

static inline void aw_lock(aw_mutex *lock) AW_ACQUIRE(*lock)
{
	aw_locks_held++;
	pthread_mutex_lock(lock);
}

static inline void aw_unlock(aw_mutex *lock) AW_RELEASE(*lock)
{
	pthread_mutex_unlock(lock);
	aw_locks_held--;
}

/* 0, or EBUSY. */
static inline int aw_trylock(aw_mutex *lock) AW_TRY_ACQUIRE(0, *lock)
{
	aw_locks_held++;
	int err = pthread_mutex_trylock(lock);

	if (err)
		aw_locks_held--;
	return err;
}

#endif
