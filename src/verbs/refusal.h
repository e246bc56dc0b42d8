// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tells who watches for it (include/anywarp/check.h) what a QP has refused its peer.
#ifndef VERBS_REFUSAL_H
#define VERBS_REFUSAL_H

#include "verbs/qp.h"

/* Called by the receiver of the QP's events, which are AW_UQP_ACCESS_ERR or AW_UQP_REQ_ERR. */
void vb_refusal_tell(struct vb_qp *qp);

#endif
