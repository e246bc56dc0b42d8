// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of verbs and of rdma_cm that a plan can have fail, by name: those for which check/hook asks.
#ifndef CHECK_FAULTS_NAMES_H
#define CHECK_FAULTS_NAMES_H

#include "base/slice.h"

#include <stdbool.h>

#define AW_FAULT_NAMES_MAX 256

/* The index of the name, or -1. */
int aw_fault_name_find(struct aw_slice slice);

/* The name of that index; NULL behind the last one. */
const char *aw_fault_name(unsigned index);

/* The errno number with which it usually fails. */
int aw_fault_name_errno(unsigned index);

/* True where the name is the pattern, in which one '*' stands for any characters. */
bool aw_fault_name_matches(struct aw_slice pattern, const char *name);

/* The name that a user may have meant; NULL: none is near. */
const char *aw_fault_name_nearest(struct aw_slice slice);

#endif
