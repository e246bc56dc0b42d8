// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The libraries' words to ThreadSanitizer, in a program that was compiled with it. The libraries are not: it sees their calls of the
// functions that its runtime replaces, such as memcpy(3), malloc(3) and pthread_mutex_lock(3), and none of their atomics.
#ifndef BASE_TSAN_H
#define BASE_TSAN_H

#include <stdbool.h>
#include <stddef.h>

/* False without the runtime: then the other calls do nothing. The build for ThreadSanitizer takes tsan_none.c. */
bool aw_tsan_is_here(void);

/* True where it watches the libraries' system calls, in that build, too. It knows few that glibc has had only since 2.35. */
bool aw_tsan_sees_calls(void);

/* The runtime's. A message makes several of the calls below, so that each looks for it first. */
__attribute__((weak)) void __tsan_release(void *at);

/* Behind the calls below, where the runtime may be there. */
void aw_tsan_begin_ignoring(void);
void aw_tsan_end_ignoring(void);
void aw_tsan_note_release(void *at);
void aw_tsan_note_acquire(void *at);

/*
 * A pair, of one thread, whose accesses to memory are not judged. A device's accesses are none of a thread's: programs watch memory
 * that a peer writes, and write memory that a peer reads, without a completion.
 */
static inline void aw_tsan_ignore_begin(void)
{
	if (__builtin_expect(__tsan_release != NULL, 0))
		aw_tsan_begin_ignoring();
}

static inline void aw_tsan_ignore_end(void)
{
	if (__builtin_expect(__tsan_release != NULL, 0))
		aw_tsan_end_ignoring();
}

/* A thread's accesses before the release come before another's behind the acquire of the same address. */
static inline void aw_tsan_release(void *at)
{
	if (__builtin_expect(__tsan_release != NULL, 0))
		aw_tsan_note_release(at);
}

static inline void aw_tsan_acquire(void *at)
{
	if (__builtin_expect(__tsan_release != NULL, 0))
		aw_tsan_note_acquire(at);
}

#endif
