// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The GID table: the addresses of the interfaces that are up. It is kept until the kernel reports a
// change of them.
#ifndef VERBS_GID_H
#define VERBS_GID_H

#include "verbs/limits.h"

#include <infiniband/verbs.h>
#include <stddef.h>

struct vb_gids {
	size_t count; /* up to the last one that is used; an unused one between has a GID of zero */
	enum ibv_mtu
		mtu; /* of the first used entry's interface; IBV_MTU_1024 when it is not known */
	struct ibv_gid_entry entries[VB_GID_MAX];
};

/*
 * Gets the current table, which does not change until vb_gids_put. 0, or an errno of getifaddrs,
 * after which there is nothing to put. Addresses beyond VB_GID_MAX are left out.
 */
int vb_gids_get(const struct vb_gids **gids);
void vb_gids_put(void);

/* Gets the entry of that index. 0, EINVAL when there is none in use, or an errno of getifaddrs. */
int vb_gid_at(uint32_t index, struct ibv_gid_entry *entry);

/* The next vb_gids_get reads the addresses anew, and until then no fd is open for them. */
void vb_gids_forget(void);

#endif
