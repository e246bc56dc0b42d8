// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SRQs of XRC: an SRQ that has a number, a CQ, and a place in an XRC domain.
#ifndef VERBS_SRQ_XRC_H
#define VERBS_SRQ_XRC_H

#include "verbs/srq.h"

/* 0, or EOPNOTSUPP, EINVAL: what ibv_create_srq_ex returns for such an SRQ before it is made. */
int vb_srq_xrc_check(struct ibv_context *context, const struct ibv_srq_init_attr_ex *attr);
/* Called as the SRQ is made, and before it is destroyed. join: 0, or an errno of a port's opening (net/roce/qpn.h). */
int vb_srq_xrc_join(struct vb_srq *srq, struct ibv_xrcd *xrcd, struct ibv_cq *cq);
void vb_srq_xrc_leave(struct vb_srq *srq);

#endif
