// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/hook/failure.h"

#include "check/hook/hook.h"
#include "check/hook/light.h"

#include <limits.h>
#include <sys/resource.h>

/* The facts from which the reason of a failed post is taken. */
static struct aw_explain_queue queue_facts(struct aw_qp_shadow *qp, const char *name, bool is_send)
{
	const struct aw_wr_queue *queue = is_send ? &qp->sends : &qp->recvs;

	return (struct aw_explain_queue){ .object = name,
					  .type = qp->type,
					  .state = aw_qp_state(qp),
					  .cap = qp->cap,
					  .under_way = queue->count,
					  .signaled = queue->signaled,
					  .is_uncounted = aw_light_is_on(),
					  .has_srq = qp->srq };
}

void aw_failure_explain_send(struct aw_qp_shadow *qp, const struct ibv_send_wr *bad, int err)
{
	char name[AW_OBJECT_NAME_MAX], why[AW_EXPLAIN_MAX];
	struct aw_explain_queue facts;

	aw_object_name(&qp->object, name);
	facts = queue_facts(qp, name, true);
	aw_explain_post_send(&facts, bad, err, why);
	aw_hook_explain("ibv_post_send", why);
}

void aw_failure_explain_recv(struct aw_qp_shadow *qp, const struct ibv_recv_wr *bad, int err)
{
	char name[AW_OBJECT_NAME_MAX], why[AW_EXPLAIN_MAX];
	struct aw_explain_queue facts;

	aw_object_name(&qp->object, name);
	facts = queue_facts(qp, name, false);
	aw_explain_post_recv(&facts, bad, err, why);
	aw_hook_explain("ibv_post_recv", why);
}

void aw_failure_explain_srq_recv(const struct aw_srq_shadow *srq, const struct ibv_recv_wr *bad,
				 int err)
{
	char name[AW_OBJECT_NAME_MAX], why[AW_EXPLAIN_MAX];
	const struct aw_explain_queue facts = { .object = name,
						.cap = { .max_recv_wr = srq->attr.max_wr,
							 .max_recv_sge = srq->attr.max_sge },
						.under_way = srq->queue.count,
						.signaled = srq->queue.count,
						.is_uncounted = aw_light_is_on(),
						.is_srq = true };

	aw_object_name(&srq->object, name);
	aw_explain_post_recv(&facts, bad, err, why);
	aw_hook_explain("ibv_post_srq_recv", why);
}

void aw_failure_explain_bind(struct aw_qp_shadow *qp, const struct ibv_mw *mw,
			     const struct ibv_mw_bind *bind, int err)
{
	const struct ibv_mr *mr = bind->bind_info.mr;
	struct aw_object *object = mr ? aw_object_get(mr, AW_KIND_MR) : NULL;
	char name[AW_OBJECT_NAME_MAX], why[AW_EXPLAIN_MAX];
	struct aw_explain_queue facts;

	aw_object_name(&qp->object, name);
	facts = queue_facts(qp, name, true);
	aw_explain_bind_mw(&facts, mw, bind,
			   object ? ((struct aw_mr_shadow *)object)->access : UINT_MAX, err, why);
	aw_hook_explain("ibv_bind_mw", why);
	aw_object_put(object);
}

void aw_failure_explain_memory(const char *call, int err, char why[AW_EXPLAIN_MAX])
{
	struct rlimit locked = { .rlim_cur = RLIM_INFINITY };

	(void)getrlimit(RLIMIT_MEMLOCK, &locked);
	aw_explain_memlock(locked.rlim_cur, err, why);
	aw_hook_explain(call, why);
}

void aw_failure_explain_completion(const struct ibv_wc *wc, bool is_planned)
{
	char why[AW_EXPLAIN_MAX];

	if (wc->status == IBV_WC_SUCCESS || (wc->status == IBV_WC_WR_FLUSH_ERR && !is_planned))
		return;
	if (is_planned)
		aw_hook_by_plan();
	aw_explain_status(wc->status, wc->opcode, why);
	aw_hook_explain("ibv_poll_cq", why);
}
