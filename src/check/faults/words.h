// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The words of the grammar of ANYWARP_FAULTS that stand for numbers: errno names, completion statuses, operations, events. A
// word may be written without the prefix of its enum, and in lower case.
#ifndef CHECK_FAULTS_WORDS_H
#define CHECK_FAULTS_WORDS_H

#include "base/slice.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

struct aw_fault_word {
	const char *name;
	int value;
};

/* Each ends with a NULL. */
extern const struct aw_fault_word aw_fault_errnos[];
extern const struct aw_fault_word aw_fault_statuses[]; /* IBV_WC_* without IBV_WC_SUCCESS */
extern const struct aw_fault_word aw_fault_ops[]; /* value: bits of aw_fault_op_bit */
extern const struct aw_fault_word aw_fault_async_events[]; /* of a port or of the device */
extern const struct aw_fault_word aw_fault_cm_events[];

/* The bit of a completion's opcode; 0: it is none that a fault changes. */
uint32_t aw_fault_op_bit(enum ibv_wc_opcode opcode);

/* The operations, as bits, whose completions can have the status. */
uint32_t aw_fault_status_ops(enum ibv_wc_status status);

/*
 * The events of rdma_cm in whose place that one can come, as bits of 1 << event; 0: it replaces none, and can only be late.
 */
uint32_t aw_fault_cm_replaces(enum rdma_cm_event_type event);

/* The status of the event where the user names none. */
int aw_fault_cm_status(enum rdma_cm_event_type event);

/* Finds the word, with or without the prefix ("IBV_WC_"). */
const struct aw_fault_word *aw_fault_word_find(const struct aw_fault_word *words,
					       const char *prefix, struct aw_slice slice);

/* The name of the value; "?" for none. */
const char *aw_fault_word_name(const struct aw_fault_word *words, int value);

/* The word that a user may have meant; NULL: none is near. */
const char *aw_fault_word_nearest(const struct aw_fault_word *words, const char *prefix,
				  struct aw_slice slice);

#endif
