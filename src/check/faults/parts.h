// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parts of a fault behind its place: "nth=3", "error=ENOMEM", "recv". Only the parser of plans includes this.
#ifndef CHECK_FAULTS_PARTS_H
#define CHECK_FAULTS_PARTS_H

#include "check/faults/plan.h"

enum aw_fault_key {
	AW_KEY_NTH,
	AW_KEY_FROM,
	AW_KEY_EVERY,
	AW_KEY_TIMES,
	AW_KEY_PROB,
	AW_KEY_AFTER,
	AW_KEY_ERROR,
	AW_KEY_DELAY,
	AW_KEY_WR,
	AW_KEY_OP,
	AW_KEY_STATUS,
	AW_KEY_REASON,
	AW_KEY_AT,
	AW_KEY_BYTE,
	AW_KEY_RATE,
	AW_KEY_DIRECTION, /* the words send and recv */
	AW_KEYS,
};

#define AW_KEY_BIT(key) (1u << (key))
#define AW_KEYS_WHEN                                                                   \
	(AW_KEY_BIT(AW_KEY_NTH) | AW_KEY_BIT(AW_KEY_FROM) | AW_KEY_BIT(AW_KEY_EVERY) | \
	 AW_KEY_BIT(AW_KEY_TIMES) | AW_KEY_BIT(AW_KEY_PROB) | AW_KEY_BIT(AW_KEY_AFTER))

/* The parser's work on one fault. */
struct aw_fault_parse {
	const char *text; /* of the plan */
	struct aw_fault *fault;
	struct aw_fault_problem *problem;
	unsigned allowed, given; /* bits of keys */
	struct aw_slice where[AW_KEYS]; /* the given ones */
};

/* Reads one part. False: the problem says why. */
__attribute__((warn_unused_result)) bool aw_fault_part_read(struct aw_fault_parse *parse,
							    struct aw_slice part);

/* Notes what is wrong with the slice, which lies in the plan's text. Returns false. */
bool aw_fault_fail(struct aw_fault_parse *parse, struct aw_slice slice, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
