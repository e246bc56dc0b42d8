// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The faults of one TCP stream. Pure. For a fault of the wire the occasion is a connection, so nth=2 is the second connection
// of the process; byte= and after= say where and when it begins.
#ifndef CHECK_FAULTS_STREAM_H
#define CHECK_FAULTS_STREAM_H

#include "check/faults/plan.h"

#include <stddef.h>

/* Each direction belongs to the thread that moves its bytes. */
struct aw_fault_stream {
	uint32_t armed; /* the plan's faults, as bits, that this stream has; fixed */
	struct {
		uint64_t offset; /* bytes moved */
		uint32_t begun; /* the faults, as bits, that have begun */
	} of[AW_WIRE_DIRECTIONS];
};

/* The next step of a call that moves bytes. */
struct aw_wire_step {
	enum aw_wire_what
		what; /* PASS and FLIP: move bytes, at most len; the others: this, instead of the call */
	size_t len;
	size_t at; /* FLIP: the byte to change */
	uint64_t rate; /* SLOW */
	bool is_first; /* RESET, FIN, SILENCE: they begin now; each later step of the direction is the same */
	unsigned fault; /* the index in the plan of the fault that is not PASS */
};

/* Decides which faults the connection has. */
void aw_fault_stream_begin(const struct aw_fault_plan *plan, struct aw_fault_count *counts,
			   uint64_t seed, struct aw_fault_stream *stream);

/* The next step of a call that would move len bytes; 0: what is due before any further byte. */
struct aw_wire_step aw_fault_stream_next(const struct aw_fault_plan *plan,
					 struct aw_fault_stream *stream,
					 enum aw_wire_direction direction, size_t len,
					 uint64_t elapsed_ns);

/* Notes that the step, PASS or FLIP, has moved bytes. */
void aw_fault_stream_moved(struct aw_fault_stream *stream, enum aw_wire_direction direction,
			   const struct aw_wire_step *step, size_t bytes);

#endif
