// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The memory of this process into which peers may reach: that of MRs with remote rights.
#ifndef CHECK_MODEL_REGISTERED_H
#define CHECK_MODEL_REGISTERED_H

#include "check/model/verbs.h"

void aw_registered_add(struct aw_mr_shadow *mr);
void aw_registered_remove(struct aw_mr_shadow *mr);

/* True where there is any; without a lock. */
bool aw_registered_is_any(void);

/*
 * Tells memory of such an MR that is given up while a QP of its PD is connected; the argument `what` is "freed". An MR is told once.
 */
void aw_registered_given_up(const char *what, uint64_t start, uint64_t end);

/* In the child of a fork. */
void aw_registered_forget(void);

#endif
