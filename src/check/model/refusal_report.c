// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/model/refusal_report.h"

#include "check/base/inside.h"
#include "check/model/qp.h"
#include "check/model/refusal.h"
#include "check/report/report.h"

#include <inttypes.h>
#include <time.h>

#define ASKERS_MAX 64 /* QPs of this process whose posts are looked at */
#define ASKERS_WAIT_NS 100000000 /* for posts that are under way */
#define NS 1000000000

/* The best guess under the table's lock, with a reference to it and the stack of its end. */
struct mr_search {
	struct aw_refused refused;
	struct aw_object *mr;
	struct aw_stack gone;
};

static void mr_consider(struct aw_object *object, void *arg)
{
	struct mr_search *search = arg;

	if (object->kind != AW_KIND_MR ||
	    !aw_refused_consider(&search->refused, (struct aw_mr_shadow *)object))
		return;
	atomic_fetch_add(&object->refs, 1);
	aw_object_put(search->mr);
	search->mr = object;
	search->gone = object->gone;
}

struct askers {
	struct aw_qp_shadow *qps[ASKERS_MAX]; /* each with a reference */
	unsigned count;
};

static void asker_collect(struct aw_object *object, void *arg)
{
	struct askers *askers = arg;

	if (object->kind != AW_KIND_QP || askers->count == ASKERS_MAX)
		return;
	atomic_fetch_add(&object->refs, 1);
	askers->qps[askers->count++] = (struct aw_qp_shadow *)object;
}

static bool post_of(struct aw_qp_shadow *qp, const struct anywarp_refusal *refusal,
		    struct aw_stack *posted)
{
	const struct aw_wr *wr =
		aw_queue_find_remote(&qp->sends, refusal->rkey, refusal->addr, refusal->length);

	if (wr)
		*posted = wr->posted;
	else if (aw_remote_has(&qp->refused, refusal->rkey, refusal->addr, refusal->length))
		*posted = qp->refused_posted;
	else
		return false;
	return true;
}

/*
 * Finds the post where the peer is of this process. A thread of the program is in a call, maybe in the very post, whose lock it
 * then holds; the library's own threads wait for posts under way, but not for ever.
 */
static bool post_find(const struct anywarp_refusal *refusal, struct aw_stack *posted)
{
	const bool may_wait = aw_inside_depth() == 1;
	struct askers askers = { .count = 0 };
	struct timespec until;
	bool found = false;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += may_wait ? ASKERS_WAIT_NS : 0;
	until.tv_sec += until.tv_nsec / NS;
	until.tv_nsec %= NS;
	aw_object_each(asker_collect, &askers);
	/* Its program may have polled the completion and destroyed the QP before this thread got a processor. */
	aw_object_each_gone(asker_collect, &askers);
	for (unsigned i = 0; i < askers.count; i++) {
		struct aw_qp_shadow *qp = askers.qps[i];

		if (!found && pthread_mutex_timedlock(&qp->lock, &until) == 0) {
			found = post_of(qp, refusal, posted);
			pthread_mutex_unlock(&qp->lock);
		}
		aw_object_put(&qp->object);
	}
	return found;
}

/* posted: NULL where the peer is another process. */
static void refusal_report(const struct aw_object *qp, const struct mr_search *search,
			   const struct aw_stack *posted)
{
	const struct anywarp_refusal *refusal = search->refused.refusal;
	const struct aw_object *mr = search->mr;
	char name[AW_OBJECT_NAME_MAX], why[AW_REFUSED_MAX];
	struct aw_report report = { .rule = AW_RULE_REMOTE_ACCESS, .object = name };
	unsigned earlier = 0;

	aw_object_name(qp, name);
	report.at = posted ? posted : mr ? &mr->made : &qp->made;
	if (search->refused.by == AW_REFUSED_BY_GONE) {
		report.earlier[earlier].what = "the MR was deregistered here";
		report.earlier[earlier++].stack = &search->gone;
	}
	if (mr && posted) {
		report.earlier[earlier].what = "the MR was registered here";
		report.earlier[earlier++].stack = &mr->made;
	} else if (mr) {
		report.earlier[earlier].what = "the QP was made here";
		report.earlier[earlier++].stack = &qp->made;
	}
	aw_refused_explain(&search->refused, why);
	aw_report(&report,
		  "%s refused its peer's %s of %" PRIu64 " bytes at 0x%" PRIx64 " by rkey 0x%x: %s",
		  name, aw_refused_request(refusal->access), refusal->length, refusal->addr,
		  refusal->rkey, why);
}

void aw_refused_report(const struct anywarp_refusal *refusal)
{
	struct aw_qp_shadow *qp = aw_qp_get(refusal->qp);
	struct mr_search search = { .refused = { .refusal = refusal } };
	struct aw_stack posted;

	if (!qp)
		return;
	search.refused.pd = qp->pd;
	aw_object_each(mr_consider, &search);
	aw_object_each_gone(mr_consider, &search);
	refusal_report(&qp->object, &search, post_find(refusal, &posted) ? &posted : NULL);
	aw_object_put(search.mr);
	aw_object_put(&qp->object);
}

static const char *request_name(enum ibv_wr_opcode opcode)
{
	if (opcode == IBV_WR_RDMA_READ)
		return "a Read";
	if (opcode == IBV_WR_ATOMIC_WRITE)
		return "an atomic write";
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD
		       ? "an atomic"
		       : "a Write";
}

static void completion_report(struct aw_qp_shadow *qp, const struct aw_wr *wr,
			      enum ibv_wc_status status)
{
	char name[AW_OBJECT_NAME_MAX];

	aw_object_name(&qp->object, name);
	aw_report(&(struct aw_report){ .rule = AW_RULE_REMOTE_ACCESS,
				       .object = name,
				       .at = &wr->posted },
		  "the peer of %s refused %s of %" PRIu64 " bytes at 0x%" PRIx64
		  " by rkey 0x%x, with status %d (%s): the end that refused it knows why",
		  name, request_name(wr->opcode), wr->remote.length, wr->remote.addr,
		  wr->remote.rkey, status, ibv_wc_status_str(status));
	qp->refused = wr->remote;
	qp->refused_posted = wr->posted;
}

void aw_refused_completed(const struct ibv_cq *cq, const struct ibv_wc *wc)
{
	struct aw_object *object;
	const struct aw_wr *wr;
	struct aw_qp_shadow *qp;

	if (wc->status != IBV_WC_REM_ACCESS_ERR && wc->status != IBV_WC_REM_INV_REQ_ERR &&
	    wc->status != IBV_WC_REM_OP_ERR)
		return;
	object = aw_object_get_by_number(cq->context, AW_KIND_QP, wc->qp_num);
	qp = (struct aw_qp_shadow *)object;
	if (qp && qp->send_cq == cq) {
		pthread_mutex_lock(&qp->lock);
		wr = aw_queue_find(&qp->sends, wc->wr_id, true);
		if (wr && wr->remote.is_set)
			completion_report(qp, wr, wc->status);
		pthread_mutex_unlock(&qp->lock);
	}
	aw_object_put(object);
}
