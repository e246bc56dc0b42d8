// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The word that a user may have meant, of those that are tried.
#ifndef CHECK_FAULTS_NEAR_H
#define CHECK_FAULTS_NEAR_H

#include "base/slice.h"

struct aw_near {
	struct aw_slice meant;
	const char *word; /* the nearest so far; NULL: none is near */
	unsigned edits;
};

struct aw_near aw_near_to(struct aw_slice meant);

/* Case does not count. A word that ends with what is meant is near as well: "reg_mr" means "ibv_reg_mr". */
void aw_near_try(struct aw_near *near, const char *word);

#endif
