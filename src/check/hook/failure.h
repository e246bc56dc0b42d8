// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Says in words why a post or a destroy failed, or what the status of a completion means.
#ifndef CHECK_HOOK_FAILURE_H
#define CHECK_HOOK_FAILURE_H

#include "check/explain/explain.h"
#include "check/model/qp.h"

/* bad: the work request that was refused; err: what the call returned. */
void aw_failure_explain_send(struct aw_qp_shadow *qp, const struct ibv_send_wr *bad, int err);
void aw_failure_explain_recv(struct aw_qp_shadow *qp, const struct ibv_recv_wr *bad, int err);
void aw_failure_explain_srq_recv(const struct aw_srq_shadow *srq, const struct ibv_recv_wr *bad,
				 int err);
void aw_failure_explain_bind(struct aw_qp_shadow *qp, const struct ibv_mw *mw,
			     const struct ibv_mw_bind *bind, int err);

/* The reason of a failed call that locks memory, to which it adds RLIMIT_MEMLOCK where memory is out. */
void aw_failure_explain_memory(const char *call, int err, char why[AW_EXPLAIN_MAX]);

/* Tells the users that the object still has; err: what the destroy returned. */
void aw_failure_explain_destroy(const char *call, const struct aw_object *object, int err);

/* Says nothing of a success, or of a flush, whose cause an earlier completion tells. is_planned: the status is the plan's. */
void aw_failure_explain_completion(const struct ibv_wc *wc, bool is_planned);

#endif
