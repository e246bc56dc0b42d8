// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The objects that other contexts of the same device may import by handle: PDs and device memory.
#ifndef VERBS_SHARE_H
#define VERBS_SHARE_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

enum vb_kind {
	VB_KIND_PD,
	VB_KIND_DM,
};

struct vb_shared {
	/* fixed after add */
	enum vb_kind kind;
	uint32_t handle; /* no other of its kind has had it */
	struct ibv_context *context;

	_Atomic uint32_t users; /* users keep it from being removed */
	TAILQ_ENTRY(vb_shared) entry; /* guarded by share.c */
};

void vb_share_add(struct vb_shared *shared, enum vb_kind kind, struct ibv_context *context);

/* False while it has users; otherwise no import finds it any more. */
bool vb_share_remove(struct vb_shared *shared);

/*
 * Gets the object that context may import, with one more user; NULL with ENOENT when there is none.
 */
struct vb_shared *vb_share_take(struct ibv_context *context, enum vb_kind kind, uint32_t handle);

#endif
