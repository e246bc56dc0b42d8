// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Decides when a held stream ends its wait.
#include "net/qp/rnr.h"

#include "base/clock.h"

#define MS_NS UINT64_C(1000000)

void aw_rnr_begin(struct aw_uqp *qp)
{
	if (!qp->by_rc)
		qp->rnr_ms = AW_RNR_MS;
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

/* Each message has the whole time; its position in the stream tells it from the message before. */
void aw_rnr_try(struct aw_uqp *qp)
{
	uint64_t now = aw_now_ns();

	if (qp->rnr_pos != qp->core.rx_pos) {
		qp->rnr_pos = qp->core.rx_pos;
		qp->rnr_since_ns = now;
	} else if (qp->rnr_ms && now - qp->rnr_since_ns >= qp->rnr_ms * MS_NS) {
		aw_rnr_end(qp);
	}
}

uint32_t aw_rnr_retry_ms(const struct aw_uqp *qp)
{
	bool is_long = aw_now_ns() - qp->rnr_since_ns >= AW_RNR_MS * MS_NS;

	return is_long ? AW_RNR_RETRY_LATE_MS : AW_RNR_RETRY_MS;
}
