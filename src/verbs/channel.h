// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A completion channel.
#ifndef VERBS_CHANNEL_H
#define VERBS_CHANNEL_H

#include "net/cq/channel.h"

#include <infiniband/verbs.h>

struct vb_channel {
	struct ibv_comp_channel ibv; /* refcnt counts CQs, guarded by the context's mutex */
	struct aw_channel events;
	struct vb_channel *next; /* of the destroyed ones that a thread waits on */
};

static inline struct vb_channel *vb_channel_of(struct ibv_comp_channel *channel)
{
	return (struct vb_channel *)channel;
}

#endif
