// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How often each function was called, in a file that the process maps, so that the numbers outlive the process however it
// ends. Several processes may have one file: it has the highest number of any of them, since a plan counts in each process for
// itself. 'anywarp check --sweep' makes and reads it.
#ifndef CHECK_FAULTS_COUNT_H
#define CHECK_FAULTS_COUNT_H

#include "check/faults/names.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct aw_fault_counts {
	_Atomic uint64_t calls[AW_FAULT_NAMES_MAX]; /* by the index of the name */
	_Atomic uint64_t injected; /* faults that have occurred, in all processes */
};

/* Maps the file, which the command has made with this size. NULL, with errno set: it cannot. Never unmapped. */
struct aw_fault_counts *aw_fault_counts_map(const char *path);

/* Counts a call of the process. */
void aw_fault_counts_add(struct aw_fault_counts *counts, unsigned name);

#endif
