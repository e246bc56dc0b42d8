// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The QP's states and the arrows between them. RFC 5040 6.2.1: a Terminate is the last message.
//
//   IDLE --> RTS --> CLOSING
//             |         |
//             +----+----+--> TERMINATE          and from each of the four to ERROR
//
// RTS goes back to IDLE where the stream ended unused (aw_qp_recall).
#include "core/machine.h"

#include "core/completion.h"
#include "core/promise.h"

static const bool arrows[][AW_QP_ERROR + 1] = {
	[AW_QP_IDLE] = { [AW_QP_RTS] = true, [AW_QP_ERROR] = true },
	[AW_QP_RTS] = { [AW_QP_IDLE] = true,
			[AW_QP_CLOSING] = true,
			[AW_QP_TERMINATE] = true,
			[AW_QP_ERROR] = true },
	[AW_QP_CLOSING] = { [AW_QP_TERMINATE] = true, [AW_QP_ERROR] = true },
	[AW_QP_TERMINATE] = { [AW_QP_ERROR] = true },
	[AW_QP_ERROR] = { false },
};

void aw_machine_go(struct aw_qp *qp, enum aw_qp_state to)
{
	AW_PROMISE(arrows[qp->state][to]);
	qp->state = to;
	if (!aw_machine_runs(qp))
		aw_stash_drop(qp);
}

void aw_machine_terminate(struct aw_qp *qp, enum aw_error why, const struct term_msg *msg)
{
	if (!aw_machine_runs(qp))
		return;
	qp->error = why;
	qp->term_len = (uint8_t)term_put(msg, qp->term);
	/* RFC 5044 7.1.2 rule 4 has no exception: before a valid FPDU arrived none goes out. */
	qp->term_due = qp->stream.initiator || qp->peer_ready;
	qp->flush_pos = qp->tx_pos;
	aw_machine_go(qp, AW_QP_TERMINATE);
	aw_completion_flush_unlent(qp);
}

void aw_machine_end(struct aw_qp *qp, enum aw_error why)
{
	if (qp->state == AW_QP_ERROR)
		return;
	if (qp->state != AW_QP_TERMINATE)
		qp->error = why;
	aw_machine_go(qp, AW_QP_ERROR);
	aw_completion_flush(qp);
}

void aw_machine_fail_wr(struct aw_qp *qp, struct aw_swqe *wqe, enum aw_wc_status status)
{
	struct term_msg msg = { .error = AW_E_LOCAL_CATASTROPHIC };

	wqe->done = true;
	wqe->status = (uint8_t)status;
	wqe->end_pos = qp->tx_pos;
	aw_machine_terminate(qp, msg.error, &msg);
}
