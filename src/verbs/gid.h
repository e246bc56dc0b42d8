// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The GID table: the addresses of the interfaces that are up, read afresh each time.
#ifndef VERBS_GID_H
#define VERBS_GID_H

#include "verbs/limits.h"

#include <infiniband/verbs.h>
#include <stddef.h>

struct vb_gids {
	size_t count;
	struct ibv_gid_entry entries[VB_GID_MAX];
};

/* 0, or an errno of getifaddrs. What is more than VB_GID_MAX is left out. */
int vb_gids_read(struct vb_gids *gids);

/* The entry of that index: 0, EINVAL where there is none, or an errno of getifaddrs. */
int vb_gid_at(uint32_t index, struct ibv_gid_entry *entry);

#endif
