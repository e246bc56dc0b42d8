// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The last events of a world, kept to be printed when a check fails; printed at once if verbose.
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#define TRACE_KEPT 160

struct trace_event {
	uint32_t step;
	char end; /* which end of a connection: 'a', 'b', ...; ' ' for the world */
	const char *what; /* a string constant with room for three numbers */
	uint64_t value[3];
};

struct trace {
	struct trace_event event[TRACE_KEPT];
	uint64_t count;
	uint64_t hash; /* of all events: two runs of a seed agree */
	bool verbose;
};

void trace_add(struct trace *trace, struct trace_event event);
void trace_print(const struct trace *trace);

/* TRACE(end, "wrote %llu", n): at most three numbers. */
#define TRACE(e, text, ...)                                                           \
	trace_add(&(e)->world->trace, (struct trace_event){ .step = (e)->world->step, \
							    .end = (e)->name,         \
							    .what = text,             \
							    .value = { __VA_ARGS__ } })

#endif
