// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A call stack with names.
#ifndef CHECK_REPORT_TRACE_H
#define CHECK_REPORT_TRACE_H

#include "check/base/stack.h"
#include "check/base/symbol.h"

#include <stdbool.h>
#include <string.h>

#define AW_TRACE_FRAMES 24 /* more than a stack has, for inlined functions */

struct aw_trace {
	unsigned frames;
	struct aw_symbol frame[AW_TRACE_FRAMES];
};

/*
 * Names the stack's frames down to main, or to the function that a thread began with. One thread at a time calls it: a part of its
 * memory is static, since a program's thread may have a small stack.
 */
void aw_trace_name(const struct aw_stack *stack, struct aw_trace *trace);

/*
 * The first frame in the program's own code: in none of the libraries that a verb passes through, nor in an inline function of
 * their headers. The first of all where there is none such; NULL of an empty trace.
 */
const struct aw_symbol *aw_trace_origin(const struct aw_trace *trace);

/* The part of a path behind its last slash. */
static inline const char *aw_trace_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

#endif
