// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A tool's functions for marks.h.
#ifndef CHECK_BASE_MARKER_H
#define CHECK_BASE_MARKER_H

#include <stddef.h>

struct aw_marker {
	void (*undefined)(void *memory, size_t len);
	void (*defined)(void *memory, size_t len);
	void (*defined_like)(void *memory, const void *kept, size_t len);
	void (*given)(void *memory, size_t len); /* NULL: the tool sees each library's writes */
	void (*hush)(void);
	void (*unhush)(void);
};

/* NULL: the process does not run under it. The build takes memcheck_none.c in the place of memcheck.c without <valgrind/memcheck.h>. */
const struct aw_marker *aw_marker_memcheck(void);
const struct aw_marker *aw_marker_msan(void);

#endif
