// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// When a held stream ends its wait.
#include "net/rnr.h"

#include "net/engine.h"

void aw_rnr_begin(struct aw_uqp *qp)
{
	qp->core.rnr_holds = true;
	qp->rnr_pos = UINT64_MAX;
}

void aw_rnr_end(struct aw_uqp *qp)
{
	qp->core.rnr_holds = false;
}

bool aw_rnr_waits(const struct aw_uqp *qp)
{
	return qp->core.rx_held > 0 && qp->core.rnr_holds && qp->core.state == AW_QP_RTS;
}

/* Each message has the whole time: the position in the stream tells one from the next. */
void aw_rnr_try(struct aw_uqp *qp)
{
	uint64_t now = aw_now_ns();

	if (qp->rnr_pos != qp->core.rx_pos) {
		qp->rnr_pos = qp->core.rx_pos;
		qp->rnr_until_ns = now + AW_RNR_MS * 1000000ULL;
	} else if (now >= qp->rnr_until_ns) {
		aw_rnr_end(qp);
	}
}
