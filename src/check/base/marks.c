// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/base/marks.h"

#include "check/base/marker.h"

/* Written before the program's first call; NULL: there is no tool. */
static const struct aw_marker *marker;

__attribute__((constructor)) static void marker_find(void)
{
	marker = aw_marker_memcheck();
	if (!marker)
		marker = aw_marker_msan();
}

void aw_mark_undefined(void *memory, size_t len)
{
	if (marker)
		marker->undefined(memory, len);
}

void aw_mark_defined(void *memory, size_t len)
{
	if (marker)
		marker->defined(memory, len);
}

void aw_mark_defined_like(void *memory, const void *kept, size_t len)
{
	if (marker)
		marker->defined_like(memory, kept, len);
}

void aw_mark_given(void *memory, size_t len)
{
	if (marker && marker->given)
		marker->given(memory, len);
}

void aw_marks_hush(void)
{
	if (marker)
		marker->hush();
}

void aw_marks_unhush(void)
{
	if (marker)
		marker->unhush();
}
