// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A CQ as verbs see it. Every CQ is an extended one; only those that ibv_create_cq_ex made have
// the polling functions.
#ifndef VERBS_CQ_H
#define VERBS_CQ_H

#include "base/thread_safety.h"
#include "net/cq/cq.h"

#include <infiniband/verbs.h>

struct vb_cq {
	struct ibv_cq_ex ibv; /* begins with a whole struct ibv_cq */
	struct aw_cq aw;
	struct ibv_pd *parent; /* the parent domain it was made in, or NULL */
	bool single_threaded;
	_Atomic uint32_t users; /* QPs, twice when they use it for both queues */
	aw_mutex poll_lock; /* from ibv_start_poll to ibv_end_poll: guards what follows */
	struct aw_cq_entry current;
};

static inline struct vb_cq *vb_cq_of(struct ibv_cq *cq)
{
	return (struct vb_cq *)cq;
}

/* Fills in the functions that poll an extended CQ, and those of the time stamps that wc_flags ask for. */
void vb_cq_ex_init(struct vb_cq *cq, uint64_t wc_flags);

#endif
