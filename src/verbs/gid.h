// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The GID table: the addresses of the interfaces that are up, and what their links make of the port's state. It is kept until the
// kernel reports a change of them.
#ifndef VERBS_GID_H
#define VERBS_GID_H

#include "verbs/limits.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vb_gids {
	size_t count; /* up to the last one that is used; an unused one between has a GID of zero */
	enum ibv_mtu
		mtu; /* of the first used entry's interface; IBV_MTU_1024 when it is not known */
	/*
	 * The port: an interface other than loopback is up and has its link. Where this process has seen none that was, loopback's
	 * state is the port's, so that programs run on a host without network.
	 */
	bool active;
	uint32_t changes; /* of the entries since the first look */
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

/* The port as it was read last, by whichever call. False: it was not read yet. */
struct vb_port_seen {
	bool active;
	uint32_t changes;
};

bool vb_gids_last(struct vb_port_seen *seen);
/* Reads anew, whatever was kept. 0, or an errno of getifaddrs. */
int vb_gids_look(struct vb_port_seen *seen);

#endif
