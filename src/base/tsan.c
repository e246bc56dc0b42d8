// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/tsan.h"

/* The runtime's. */
__attribute__((weak)) void AnnotateIgnoreReadsBegin(const char *file, int line);
__attribute__((weak)) void AnnotateIgnoreReadsEnd(const char *file, int line);
__attribute__((weak)) void AnnotateIgnoreWritesBegin(const char *file, int line);
__attribute__((weak)) void AnnotateIgnoreWritesEnd(const char *file, int line);
__attribute__((weak)) void __tsan_acquire(void *at);

bool aw_tsan_is_here(void)
{
	return __tsan_acquire && __tsan_release && AnnotateIgnoreReadsBegin &&
	       AnnotateIgnoreReadsEnd && AnnotateIgnoreWritesBegin && AnnotateIgnoreWritesEnd;
}

bool aw_tsan_sees_calls(void)
{
	return __tsan_release;
}

void aw_tsan_begin_ignoring(void)
{
	if (!AnnotateIgnoreReadsBegin || !aw_tsan_is_here())
		return;
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

void aw_tsan_end_ignoring(void)
{
	if (!AnnotateIgnoreReadsEnd || !aw_tsan_is_here())
		return;
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

void aw_tsan_note_release(void *at)
{
	__tsan_release(at);
}

void aw_tsan_note_acquire(void *at)
{
	if (__tsan_acquire)
		__tsan_acquire(at);
}
