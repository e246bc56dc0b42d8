// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "core/ending.h"

#include "core/rnr_wait.h"

#define MS_NS 1000000ull

void aw_ending_expire(struct aw_ending *ending, struct aw_qp *qp, uint64_t now_ns)
{
	if (!ending->begun || now_ns < ending->deadline_ns)
		return;
	if (aw_qp_drop_answers(qp))
		ending->deadline_ns = now_ns + AW_TERMINATE_MS * MS_NS;
	else
		aw_qp_abort(qp, qp->error);
}

unsigned int aw_ending_follow(struct aw_ending *ending, struct aw_qp *qp, bool is_sent,
			      uint64_t now_ns)
{
	bool closing = qp->state == AW_QP_CLOSING;
	unsigned int steps = 0;

	if (!ending->begun && (closing || qp->state == AW_QP_TERMINATE)) {
		ending->begun = true;
		ending->deadline_ns = now_ns + (closing ? AW_CLOSE_MS : AW_TERMINATE_MS) * MS_NS;
		aw_rnr_wait_end(qp);
		steps |= AW_ENDING_BEGUN;
	}
	if (ending->begun && is_sent && aw_qp_tx_finished(qp)) {
		if (!ending->fin_sent) {
			aw_qp_close(qp); /* posts from now on are flushed */
			ending->fin_sent = true;
			steps |= AW_ENDING_FIN;
		}
		if (qp->peer_closed || qp->state == AW_QP_TERMINATE)
			aw_qp_abort(qp, qp->error);
	}
	return steps;
}
