// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "base/tsan.h"

/* The runtime's. */
__attribute__((weak)) void AnnotateIgnoreReadsBegin(const char *file, int line);
__attribute__((weak)) void AnnotateIgnoreReadsEnd(const char *file, int line);
__attribute__((weak)) void AnnotateIgnoreWritesBegin(const char *file, int line);
__attribute__((weak)) void AnnotateIgnoreWritesEnd(const char *file, int line);
__attribute__((weak)) void __tsan_acquire(void *at);
__attribute__((weak)) void __tsan_release(void *at);

bool aw_tsan_is_here(void)
{
	return __tsan_acquire && __tsan_release && AnnotateIgnoreReadsBegin &&
	       AnnotateIgnoreReadsEnd && AnnotateIgnoreWritesBegin && AnnotateIgnoreWritesEnd;
}

void aw_tsan_ignore_begin(void)
{
	if (!AnnotateIgnoreReadsBegin || !aw_tsan_is_here())
		return;
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

void aw_tsan_ignore_end(void)
{
	if (!AnnotateIgnoreReadsEnd || !aw_tsan_is_here())
		return;
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

void aw_tsan_release(void *at)
{
	if (__tsan_release)
		__tsan_release(at);
}

void aw_tsan_acquire(void *at)
{
	if (__tsan_acquire)
		__tsan_acquire(at);
}
