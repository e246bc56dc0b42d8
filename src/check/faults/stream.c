// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/faults/stream.h"

void aw_fault_stream_begin(const struct aw_fault_plan *plan, struct aw_fault_count *counts,
			   uint64_t seed, struct aw_fault_stream *stream)
{
	*stream = (struct aw_fault_stream){ 0 };
	for (unsigned i = 0; i < plan->count; i++) {
		const struct aw_fault *fault = &plan->faults[i];
		struct aw_fault_when when = fault->when;
		uint64_t n;

		when.after_ns = 0; /* a time within the connection's life */
		if ((fault->kind == AW_FAULT_WIRE || fault->at_byte) &&
		    aw_fault_decide(&when, &counts[i], seed, i, 0, &n))
			stream->armed |= 1u << i;
	}
}

/* Adds a byte to change. A step changes one: it ends before the second. */
static void flip(struct aw_wire_step *step, uint64_t at, unsigned fault)
{
	if (at >= step->len)
		return;
	if (step->what == AW_WIRE_FLIP && step->at < at) {
		step->len = at;
		return;
	}
	if (step->what == AW_WIRE_FLIP && step->at > at)
		step->len = step->at;
	step->what = AW_WIRE_FLIP;
	step->at = at;
	step->fault = fault;
}

struct aw_wire_step aw_fault_stream_next(const struct aw_fault_plan *plan,
					 struct aw_fault_stream *stream,
					 enum aw_wire_direction direction, size_t len,
					 uint64_t elapsed_ns)
{
	struct aw_wire_step step = { .what = AW_WIRE_PASS, .len = len };

	for (unsigned i = 0; i < plan->count; i++) {
		const struct aw_fault *fault = &plan->faults[i];
		uint64_t offset = stream->of[direction].offset;
		uint64_t left = fault->byte > offset ? fault->byte - offset : 0;
		bool has_begun = stream->of[direction].begun & 1u << i;
		/* Nothing else happens in the direction once one of these has. */
		bool is_last = fault->what == AW_WIRE_RESET || fault->what == AW_WIRE_FIN ||
			       fault->what == AW_WIRE_SILENCE;

		if (!(stream->armed & 1u << i) || fault->direction != direction ||
		    elapsed_ns < fault->when.after_ns || (has_begun && !is_last))
			continue;
		if (fault->what == AW_WIRE_FLIP) {
			flip(&step, left, i);
		} else if (left == 0) {
			stream->of[direction].begun |= 1u << i;
			return (struct aw_wire_step){ .what = fault->what,
						      .rate = fault->rate,
						      .is_first = !has_begun,
						      .fault = i };
		} else if (left < step.len) {
			step.len = left;
		}
	}
	if (step.what == AW_WIRE_FLIP && step.at >= step.len)
		step.what = AW_WIRE_PASS;
	return step;
}

void aw_fault_stream_moved(struct aw_fault_stream *stream, enum aw_wire_direction direction,
			   const struct aw_wire_step *step, size_t bytes)
{
	stream->of[direction].offset += bytes;
	if (step->what == AW_WIRE_FLIP && bytes > step->at)
		stream->of[direction].begun |= 1u << step->fault;
}
