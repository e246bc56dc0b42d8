// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// XRC domains. Every ibv_open_xrcd makes an XRCD, a handle of its context; those with the same file have one domain,
// which ends with the last of them.
#ifndef VERBS_XRCD_H
#define VERBS_XRCD_H

#include "base/thread_safety.h"
#include "net/cq/xrc.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

struct vb_target;

struct vb_domain {
	/* fixed after create */
	bool has_file; /* the inode by which other XRCDs find the domain */
	dev_t dev;
	ino_t ino;

	struct aw_xrcd aw;
	int mark_fd; /* tells other processes that this one has the file's domain; -1: none */
	/* guarded by vb_xrc_lock */
	uint32_t xrcds;
	TAILQ_HEAD(, vb_target) targets;
	TAILQ_ENTRY(vb_domain) entry;
};

struct vb_xrcd {
	struct ibv_xrcd ibv;
	struct vb_domain *domain;
	_Atomic uint32_t users; /* SRQs and target QPs that were made or opened with it */
};

/* Guards the domains, their target QPs, and the handles of those. Taken before an event channel's lock. */
extern aw_mutex vb_xrc_lock;

static inline struct vb_xrcd *vb_xrcd_of(struct ibv_xrcd *xrcd)
{
	return (struct vb_xrcd *)xrcd;
}

#endif
