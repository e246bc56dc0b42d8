// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The libraries' words to ThreadSanitizer, in a program that was compiled with it. The libraries are not: it sees their calls of the
// functions that its runtime replaces, such as memcpy(3), malloc(3) and pthread_mutex_lock(3), and none of their atomics.
#ifndef BASE_TSAN_H
#define BASE_TSAN_H

#include <stdbool.h>

/* False without the runtime: then the other calls do nothing. The build for ThreadSanitizer takes tsan_none.c. */
bool aw_tsan_is_here(void);

/*
 * A pair, of one thread, whose accesses to memory are not judged. A device's accesses are none of a thread's: programs watch memory
 * that a peer writes, and write memory that a peer reads, without a completion.
 */
void aw_tsan_ignore_begin(void);
void aw_tsan_ignore_end(void);

/* A thread's accesses before the release come before another's behind the acquire of the same address. */
void aw_tsan_release(void *at);
void aw_tsan_acquire(void *at);

#endif
