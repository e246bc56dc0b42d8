// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An SRQ as verbs see it.
#ifndef VERBS_SRQ_H
#define VERBS_SRQ_H

#include "net/cq/xrc.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>

struct vb_srq {
	struct ibv_srq ibv;
	struct aw_srq aw;
	_Atomic uint32_t users; /* QPs */
	/* of one with IBV_SRQT_XRC; else NULL */
	struct ibv_xrcd *xrcd;
	struct ibv_cq *cq;
	struct aw_xrc_srq *xrc;
};

static inline struct vb_srq *vb_srq_of(struct ibv_srq *srq)
{
	return (struct vb_srq *)srq;
}

#endif
