// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The QP's states for the files of this directory; drivers use qp.h.
#ifndef CORE_MACHINE_H
#define CORE_MACHINE_H

#include "core/qp.h"

/* The only function that changes the state. */
void aw_machine_go(struct aw_qp *qp, enum aw_qp_state to);

/* RTS or CLOSING: messages are exchanged. */
static inline bool aw_machine_runs(const struct aw_qp *qp)
{
	return qp->state == AW_QP_RTS || qp->state == AW_QP_CLOSING;
}

/* Goes to TERMINATE for this reason, with this message due; only while the stream runs. */
void aw_machine_terminate(struct aw_qp *qp, enum aw_error why, const struct term_msg *msg);

/* Goes to ERROR, and flushes. The error that led to TERMINATE before stays the reason. */
void aw_machine_end(struct aw_qp *qp, enum aw_error why);

/*
 * A local failure: WR wqe fails with that status, and a Terminate notifies the peer of a local
 * error.
 */
void aw_machine_fail_wr(struct aw_qp *qp, struct aw_swqe *wqe, enum aw_wc_status status);

#endif
