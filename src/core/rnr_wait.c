// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "core/rnr_wait.h"

#define MS_NS 1000000ull

void aw_rnr_wait_begin(struct aw_rnr_wait *wait, struct aw_qp *qp)
{
	wait->msn = UINT64_MAX;
	qp->rnr_holds = true;
	qp->rnr_over = false;
}

void aw_rnr_wait_try(struct aw_rnr_wait *wait, struct aw_qp *qp, uint32_t limit_ms, uint64_t now_ns)
{
	if (wait->msn != qp->rx_msn[DDP_QN_SEND]) {
		wait->msn = qp->rx_msn[DDP_QN_SEND];
		wait->since_ns = now_ns;
	} else if (limit_ms && now_ns - wait->since_ns >= limit_ms * MS_NS) {
		qp->rnr_holds = false;
		qp->rnr_over = true;
	}
}

uint32_t aw_rnr_wait_retry_ms(const struct aw_rnr_wait *wait, uint64_t now_ns)
{
	return now_ns - wait->since_ns >= AW_RNR_MS * MS_NS ? AW_RNR_RETRY_LATE_MS
							    : AW_RNR_RETRY_MS;
}
