// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/report/trace.h"

#include "base/array.h"

#include <string.h>

static bool begins_with(const char *text, const char *beginning)
{
	return strncmp(text, beginning, strlen(beginning)) == 0;
}

static bool is_libc(const struct aw_symbol *symbol)
{
	const char *module = aw_trace_base(symbol->module);

	return begins_with(module, "libc.so.") || begins_with(module, "libpthread.so.") ||
	       begins_with(module, "ld-linux") || begins_with(module, "ld-musl");
}

/* Posts and polls are inline functions of the headers: their frames are in the program, their lines are not. */
static bool is_passed_through(const struct aw_symbol *symbol)
{
	static const char *const modules[] = { "libibverbs.so.", "librdmacm.so.",
					       "libanywarp-check.so" };
	static const char *const headers[] = { "/infiniband/verbs.h", "/rdma/rdma_verbs.h",
					       "/rdma/rdma_cma.h" };
	size_t len = strlen(symbol->file);

	if (is_libc(symbol))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(modules); i++)
		if (begins_with(aw_trace_base(symbol->module), modules[i]))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
		size_t end = strlen(headers[i]);

		if (len >= end && !strcmp(symbol->file + len - end, headers[i]))
			return true;
	}
	return false;
}

void aw_trace_name(const struct aw_stack *stack, struct aw_trace *trace)
{
	static struct aw_symbol names[AW_SYMBOL_INLINED_MAX];
	bool is_main = false;

	trace->frames = 0;
	for (unsigned i = 0; i < stack->frames && !is_main; i++) {
		size_t count = aw_symbol_find(stack->pc[i], names);

		for (size_t j = 0; j < count && trace->frames < AW_TRACE_FRAMES; j++) {
			trace->frame[trace->frames++] = names[j];
			is_main = is_main || !strcmp(names[j].function, "main");
		}
	}
	while (!is_main && trace->frames > 1 &&
	       (is_libc(&trace->frame[trace->frames - 1]) ||
		!strcmp(trace->frame[trace->frames - 1].function, "_start")))
		trace->frames--;
}

const struct aw_symbol *aw_trace_origin(const struct aw_trace *trace)
{
	for (unsigned i = 0; i < trace->frames; i++)
		if (!is_passed_through(&trace->frame[i]))
			return &trace->frame[i];
	return trace->frames ? &trace->frame[0] : NULL;
}
