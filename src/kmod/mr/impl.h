// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Within mr*.c: the making of every kind of region.
#ifndef KMOD_MR_IMPL_H
#define KMOD_MR_IMPL_H

#include "kmod/mr/mr.h"

/* Makes a region with room for so many pages, in no table yet; or an ERR_PTR. */
struct awk_mr *awk_mr_create(enum awk_mr_kind kind, u32 pages_max);
/* Frees a region that is in no table, and that no thread holds. */
void awk_mr_free(struct awk_mr *mr);
/* Gives the region an STag of pd. 0 or -ENOMEM, -EBUSY. */
int awk_mr_enlist(struct awk_mr *mr, struct ib_pd *pd);

/* enum ib_access_flags as enum aw_access. Unknown rights are not granted. */
static inline u32 awk_mr_access(int access)
{
	return (access & IB_ACCESS_LOCAL_WRITE ? AW_ACCESS_LOCAL_WRITE : 0) |
	       (access & IB_ACCESS_REMOTE_WRITE ? AW_ACCESS_REMOTE_WRITE : 0) |
	       (access & IB_ACCESS_REMOTE_READ ? AW_ACCESS_REMOTE_READ : 0) |
	       (access & IB_ACCESS_REMOTE_ATOMIC ? AW_ACCESS_REMOTE_ATOMIC : 0);
}

#endif
