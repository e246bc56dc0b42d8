// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The users of an object that a call was to destroy, as the shadows of the other objects tell.
#include "check/hook/failure.h"
#include "check/hook/hook.h"

struct users_of {
	const void *handle;
	struct aw_explain_users users;
};

/* Under the table's lock: an object that is not gone is there still, and so is the library's own object. */
static void user_count(struct aw_object *object, void *arg)
{
	struct users_of *of = arg;
	const struct ibv_qp *qp;
	const struct ibv_srq *srq;

	switch (object->kind) {
	case AW_KIND_QP:
		qp = ((struct aw_qp_shadow *)object)->qp;
		of->users.qps += of->handle == qp->pd || of->handle == qp->send_cq ||
				 of->handle == qp->recv_cq || of->handle == qp->srq;
		break;
	case AW_KIND_SRQ:
		srq = ((struct aw_srq_shadow *)object)->srq;
		of->users.srqs += of->handle == srq->pd;
		break;
	case AW_KIND_CQ:
		of->users.cqs += of->handle == ((struct aw_cq_shadow *)object)->channel;
		break;
	case AW_KIND_MR:
		of->users.mrs += of->handle == ((const struct ibv_mr *)object->handle)->pd;
		break;
	case AW_KIND_MW:
		of->users.mws += of->handle == ((const struct ibv_mw *)object->handle)->pd;
		break;
	case AW_KIND_AH:
		of->users.ahs += of->handle == ((const struct ibv_ah *)object->handle)->pd;
		break;
	case AW_KIND_PD:
		of->users.imports += of->handle != object->handle &&
				     (of->handle == ((struct aw_pd_shadow *)object)->parent ||
				      of->handle == ((struct aw_pd_shadow *)object)->td);
		break;
	default:
		break;
	}
}

void aw_failure_explain_destroy(const char *call, const struct aw_object *object, int err)
{
	struct users_of of = { .handle = object->handle };
	char why[AW_EXPLAIN_MAX];

	aw_object_each(user_count, &of);
	aw_explain_destroy(call, &of.users, err, why);
	aw_hook_explain(call, why);
}
