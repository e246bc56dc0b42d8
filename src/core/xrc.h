// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The QPs of extended reliable connections (docs/extensions.md): where a message finds its receive, and which
// MRs the peer may name. On every other QP these are the QP's own.
#ifndef CORE_XRC_H
#define CORE_XRC_H

#include "core/qp.h"

/* The number in the header of an outbound Send or Immediate: RFC 5040 has the field reserved there. */
static inline uint32_t aw_xrc_srqn(const struct aw_qp *qp, const struct aw_swqe *wqe)
{
	return qp->xrc == AW_XRC_INITIATOR ? (uint32_t)wqe->swap : 0;
}

/*
 * The PD that an MR must have which the peer names (NULL: there is no such MR). A Write has no room for
 * the number of an SRQ, by whose PD InfiniBand checks; and the peer may choose among all SRQs of the domain.
 */
static inline const void *aw_xrc_pd(const struct aw_qp *qp, const struct aw_mr *mr)
{
	if (qp->xrc != AW_XRC_TARGET || !mr || !qp->ops->xrc_has_pd(qp->ctx, mr->pd))
		return qp->pd;
	return mr->pd;
}

#endif
