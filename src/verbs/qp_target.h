// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Target QPs of XRC (IBV_QPT_XRC_RECV). As in the kernel, programs have handles of such a QP: that of
// ibv_create_qp_ex, and one for each ibv_open_qp. It ends with its last handle, and each gets its events.
#ifndef VERBS_QP_TARGET_H
#define VERBS_QP_TARGET_H

#include "verbs/qp.h"

#include <sys/queue.h>

struct vb_target {
	struct vb_qp qp; /* the QP itself, which no program sees */
	struct aw_xrc_done done; /* the driver's */
	struct vb_domain *domain;
	/* guarded by vb_xrc_lock */
	TAILQ_HEAD(, vb_qp) handles;
	TAILQ_ENTRY(vb_target) entry; /* of its domain */
};

/* NULL, with errno. */
struct ibv_qp *vb_target_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
/* ibv_destroy_qp of a handle. */
void vb_target_close(struct vb_qp *handle);

/* The QP whose state and attributes a program's QP has: itself, unless it is a handle. */
static inline struct vb_qp *vb_qp_real(struct ibv_qp *ibv)
{
	struct vb_qp *qp = vb_qp_of(ibv);

	return qp->target ? &qp->target->qp : qp;
}

#endif
