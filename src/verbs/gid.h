// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The GID table: the addresses of the interfaces that are up. It is kept as long as the kernel has no
// news of them.
#ifndef VERBS_GID_H
#define VERBS_GID_H

#include "verbs/limits.h"

#include <infiniband/verbs.h>
#include <stddef.h>

struct vb_gids {
	size_t count;
	enum ibv_mtu mtu; /* of the interface of the first; IBV_MTU_1024 where it cannot be told */
	struct ibv_gid_entry entries[VB_GID_MAX];
};

/*
 * The table now, which nobody changes until vb_gids_put: 0, or an errno of getifaddrs, and then there
 * is nothing to put. What is more than VB_GID_MAX is left out.
 */
int vb_gids_get(const struct vb_gids **gids);
void vb_gids_put(void);

/* The entry of that index: 0, EINVAL where there is none, or an errno of getifaddrs. */
int vb_gid_at(uint32_t index, struct ibv_gid_entry *entry);

/* The table is read anew when it is asked for next, and until then there is no fd for it. */
void vb_gids_forget(void);

#endif
