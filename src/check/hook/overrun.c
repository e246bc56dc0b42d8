// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/hook/overrun.h"

#include "check/base/real.h"
#include "check/faults/faults.h"
#include "check/hook/async.h"
#include "check/model/qp.h"

#define QPS_MAX 256 /* of one CQ; those beyond stay as they are */

/* The CQ's QPs, each with a reference. */
struct users {
	const struct ibv_cq *cq;
	struct aw_qp_shadow *qps[QPS_MAX];
	unsigned count;
};

static void user_find(struct aw_object *object, void *arg)
{
	struct users *users = arg;
	struct aw_qp_shadow *qp = (struct aw_qp_shadow *)object;

	if (object->kind != AW_KIND_QP || users->count == QPS_MAX ||
	    (qp->send_cq != users->cq && qp->recv_cq != users->cq))
		return;
	atomic_fetch_add(&object->refs, 1);
	users->qps[users->count++] = qp;
}

static void qps_fail(const struct ibv_cq *cq)
{
	struct users users = { .cq = cq };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	aw_object_each(user_find, &users);
	for (unsigned i = 0; i < users.count; i++) {
		(void)aw_real()->ibv_modify_qp(users.qps[i]->qp, &attr, IBV_QP_STATE);
		aw_object_put(&users.qps[i]->object);
	}
}

bool aw_overrun_loses(struct aw_cq_shadow *cq)
{
	if (atomic_load(&cq->is_overrun))
		return true;
	if (!aw_fault_cq_overrun())
		return false;
	if (!atomic_exchange(&cq->is_overrun, true)) {
		atomic_store(&cq->overrun_unacked, true);
		atomic_store(&cq->overrun_due, true);
	}
	return true;
}

void aw_overrun_settle(struct aw_cq_shadow *cq)
{
	if (!atomic_load(&cq->overrun_due) || !atomic_exchange(&cq->overrun_due, false))
		return;
	qps_fail(cq->cq);
	aw_async_cq_error(cq->cq);
}
