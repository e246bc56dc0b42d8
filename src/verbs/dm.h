// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Device memory.
#ifndef VERBS_DM_H
#define VERBS_DM_H

#include "verbs/share.h"

#define VB_DM_MAX (256u << 10) /* bytes in all, as much as adapters have */

struct vb_dm {
	struct ibv_dm ibv;
	struct vb_dm *base; /* itself, or the one that was imported, whose fields below are used */
	struct vb_shared shared; /* users: MRs and imports */
	uint8_t *memory;
	size_t length;
};

static inline struct vb_dm *vb_dm_of(struct ibv_dm *dm)
{
	return (struct vb_dm *)dm;
}

/* dm is a base. An MR in it keeps it from being freed. */
static inline void vb_dm_get(struct vb_dm *dm)
{
	atomic_fetch_add_explicit(&dm->shared.users, 1, memory_order_relaxed);
}

/* Release pairs with the acquire in vb_share_remove. */
static inline void vb_dm_put(struct vb_dm *dm)
{
	atomic_fetch_sub_explicit(&dm->shared.users, 1, memory_order_release);
}

#endif
