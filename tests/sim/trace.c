// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The event trace.
#include "trace.h"

#include <stdio.h>

static void print(const struct trace_event *event)
{
	printf("  %7u %c ", event->step, event->end);
	/* The texts are this program's own constants; trace.h bounds their numbers. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
	printf(event->what, (unsigned long long)event->value[0],
	       (unsigned long long)event->value[1], (unsigned long long)event->value[2]);
#pragma GCC diagnostic pop
	putchar('\n');
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * 0x100000001b3u + (hash >> 29);
}

void trace_add(struct trace *trace, struct trace_event event)
{
	trace->hash = mix(mix(trace->hash, event.step), (uint64_t)event.end << 8 | event.what[0]);
	for (int i = 0; i < 3; i++)
		trace->hash = mix(trace->hash, event.value[i]);
	trace->event[trace->count++ % TRACE_KEPT] = event;
	if (trace->verbose)
		print(&event);
}

void trace_print(const struct trace *trace)
{
	uint64_t first = trace->count > TRACE_KEPT ? trace->count - TRACE_KEPT : 0;

	for (uint64_t i = first; i < trace->count; i++)
		print(&trace->event[i % TRACE_KEPT]);
}
