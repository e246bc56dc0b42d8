// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A memory window as verbs see it, over the window of the driver.
#ifndef VERBS_MW_H
#define VERBS_MW_H

#include "core/types.h"

#include <infiniband/verbs.h>

/*
 * Fills the binding into a WQE that was begun: the window's index with key, whose upper 24 bits
 * have no effect. The WQE takes no SGE. 0, or EINVAL: no window or one that is not of this type, no
 * MR though there is a range, rights that no window gives. Other errors are found when the WR
 * executes.
 */
int vb_mw_fill(struct aw_swqe *wqe, enum ibv_mw_type type, struct ibv_mw *mw, uint32_t key,
	       const struct ibv_mw_bind_info *info);

/*
 * Called for a WQE of any kind just before it is committed: a window that it binds has that rkey
 * from now on.
 */
void vb_mw_posted(const struct aw_swqe *wqe);

#endif
