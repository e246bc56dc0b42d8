// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A memory window as verbs see it, over the window of the driver.
#ifndef VERBS_MW_H
#define VERBS_MW_H

#include "core/types.h"

#include <infiniband/verbs.h>

/*
 * What the WR binds, into a WQE that was begun. 0, or EINVAL: no window or one that is not of this
 * type, no MR though there is a range, rights that no window gives. The rest is found out at work.
 */
int vb_mw_fill(struct aw_swqe *wqe, enum ibv_mw_type type, struct ibv_mw *mw, uint32_t rkey,
	       const struct ibv_mw_bind_info *info);

#endif
