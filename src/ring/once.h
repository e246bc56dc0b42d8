// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Set-up that a process does once, when it is first needed. Unlike pthread_once it may fail, for
// want of memory say, and the next caller then tries again.
#ifndef RING_ONCE_H
#define RING_ONCE_H

#include "ring/lock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct aw_once {
	aw_mutex lock; /* held while init runs */
	_Atomic bool done;
};

#define AW_ONCE_INIT                              \
	{                                         \
		.lock = PTHREAD_MUTEX_INITIALIZER \
	}

/* 0 once init has returned 0; else its error. init leaves nothing behind when it fails. */
static inline int aw_once_run(struct aw_once *once, int (*init)(void))
{
	int err = 0;

	/* Acquire: pairs with the release below; a thread that sees done sees what init made. */
	if (atomic_load_explicit(&once->done, memory_order_acquire))
		return 0;
	aw_lock(&once->lock);
	if (!atomic_load_explicit(&once->done, memory_order_relaxed)) {
		err = init();
		atomic_store_explicit(&once->done, !err, memory_order_release);
	}
	aw_unlock(&once->lock);
	return err;
}

#endif
