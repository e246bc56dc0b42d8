// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// In the build for ThreadSanitizer, which is to see all that the libraries do.
#include "base/tsan.h"

bool aw_tsan_is_here(void)
{
	return false;
}

bool aw_tsan_sees_calls(void)
{
	return true;
}

void aw_tsan_begin_ignoring(void)
{
}

void aw_tsan_end_ignoring(void)
{
}

void aw_tsan_note_release(void *at)
{
	(void)at;
}

void aw_tsan_note_acquire(void *at)
{
	(void)at;
}
