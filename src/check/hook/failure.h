// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Says in words why a post failed, or what the status of a completion means.
#ifndef CHECK_HOOK_FAILURE_H
#define CHECK_HOOK_FAILURE_H

#include "check/model/qp.h"

/* bad: the work request that was refused; err: what the call returned. */
void aw_failure_explain_send(struct aw_qp_shadow *qp, const struct ibv_send_wr *bad, int err);
void aw_failure_explain_recv(struct aw_qp_shadow *qp, const struct ibv_recv_wr *bad, int err);
void aw_failure_explain_srq_recv(const struct aw_srq_shadow *srq, const struct ibv_recv_wr *bad,
				 int err);

/* Says nothing of a success, or of a flush, whose cause an earlier completion tells. is_planned: the status is the plan's. */
void aw_failure_explain_completion(const struct ibv_wc *wc, bool is_planned);

#endif
