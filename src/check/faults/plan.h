// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A plan of faults: the text of ANYWARP_FAULTS as values, and whether a fault occurs. Pure: time and seed are arguments, and
// the counters are the caller's. anywarp-faults(7) has the grammar.
//
// Each fault has a place, at which there are occasions: a call of its function, a completion, a connection. It counts the
// occasions from the time after= on, from 1, each fault for itself. It occurs at an occasion if nth=, from=, every=, times= and
// prob= allow it. That prob= does depends on the seed, on the fault's position in the plan and on the occasion's number
// alone, so that neither threads nor other faults change it.
#ifndef CHECK_FAULTS_PLAN_H
#define CHECK_FAULTS_PLAN_H

#include "base/slice.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define AW_FAULTS_ENV "ANYWARP_FAULTS"
#define AW_FAULTS_SEED_ENV "ANYWARP_FAULTS_SEED"
/* The file of the counts: check/faults/count.h. */
#define AW_FAULTS_COUNT_ENV "ANYWARP_FAULTS_COUNT"

#define AW_FAULTS_MAX 32 /* faults of a plan; a stream has a bit for each */
#define AW_FAULTS_TEXT_MAX 4096 /* bytes of a plan's text, with its 0 */
#define AW_FAULTS_WHY_MAX 640
#define AW_FAULTS_SHOWN_MAX 72 /* bytes of a text that an error shows */

enum aw_fault_kind {
	AW_FAULT_CALL, /* a function fails, or is slow */
	AW_FAULT_COMPLETION,
	AW_FAULT_QP_ERROR,
	AW_FAULT_CQ_OVERRUN,
	AW_FAULT_ASYNC,
	AW_FAULT_CM, /* one event in the place of another */
	AW_FAULT_CM_LATE,
	AW_FAULT_WIRE,
	AW_FAULT_SELF, /* the process stops or ends */
	AW_FAULT_KINDS,
};

/* The fate of a TCP stream, or to the process at a byte of one. */
enum aw_wire_what {
	AW_WIRE_PASS,
	AW_WIRE_RESET,
	AW_WIRE_FIN,
	AW_WIRE_SILENCE,
	AW_WIRE_FLIP,
	AW_WIRE_SLOW,
	AW_WIRE_STOP,
	AW_WIRE_KILL,
};

enum aw_wire_direction {
	AW_WIRE_SEND,
	AW_WIRE_RECV,
	AW_WIRE_DIRECTIONS
};

/* 0 where the user gives no such part. */
struct aw_fault_when {
	uint64_t nth, from, every, times;
	uint64_t probability; /* of AW_FAULT_CERTAIN */
	uint64_t after_ns; /* since the plan's start */
};

struct aw_fault {
	enum aw_fault_kind kind;
	struct aw_slice text; /* as the user wrote it */
	struct aw_fault_when when;
	struct aw_slice name; /* CALL; SELF, where empty is any function */
	int err; /* CALL: 0 fails not, but may be slow; CM: the event's status */
	bool is_usual; /* CALL of several functions: each fails with what is usual for it, rather than with err */
	uint64_t delay_ns; /* CALL, CM_LATE */
	unsigned wr; /* CALL of a post: the WR of the list that fails, from 1; 0: the first */
	enum ibv_wc_status status;
	uint32_t ops; /* COMPLETION: of those operations */
	enum ibv_event_type async;
	enum rdma_cm_event_type event; /* CM, CM_LATE */
	enum aw_wire_what what; /* WIRE, SELF: STOP or KILL */
	enum aw_wire_direction direction;
	uint64_t byte; /* the first byte that is concerned */
	bool at_byte; /* SELF: at a byte rather than at a call */
	uint64_t rate; /* bytes a second */
};

struct aw_fault_plan {
	char text[AW_FAULTS_TEXT_MAX];
	struct aw_fault faults[AW_FAULTS_MAX];
	unsigned count;
};

/* Of one fault. Threads count in parallel. */
struct aw_fault_count {
	_Atomic uint64_t occasions, occurred;
};

/* An error in a text, and the part of it. */
struct aw_fault_problem {
	size_t at, len;
	char why[AW_FAULTS_WHY_MAX]; /* with the remedy */
};

/* Reads the text; NULL or empty is a plan without faults. False: *problem says why, and *plan is of no use. */
__attribute__((warn_unused_result)) bool aw_fault_plan_parse(const char *text,
							     struct aw_fault_plan *plan,
							     struct aw_fault_problem *problem);

/* Writes what the text has at the part, and in a second line a caret below each character of the part. */
void aw_fault_problem_show(const char *text, const struct aw_fault_problem *problem,
			   char lines[2 * AW_FAULTS_SHOWN_MAX + 4]);

/* True where the plan has a fault of the wire, so that all bytes have to go by TCP. */
bool aw_fault_plan_needs_wire(const struct aw_fault_plan *plan);

/*
 * Counts an occasion and returns whether the fault occurs at it. index: of the fault in its plan. elapsed_ns: since the
 * plan's start. Where it does occur, *n is the occasion's number.
 */
bool aw_fault_decide(const struct aw_fault_when *when, struct aw_fault_count *count, uint64_t seed,
		     unsigned index, uint64_t elapsed_ns, uint64_t *n);

#endif
