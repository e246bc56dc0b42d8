// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/model/qp.h"

#include "check/base/marks.h"
#include "check/base/real.h"
#include "check/model/batch.h"
#include "check/report/report.h"

#include <inttypes.h>
#include <stdlib.h>

struct aw_qp_shadow *aw_qp_get(const struct ibv_qp *qp)
{
	return (struct aw_qp_shadow *)aw_object_get(qp, AW_KIND_QP);
}

struct aw_srq_shadow *aw_srq_get(const struct ibv_srq *srq)
{
	return (struct aw_srq_shadow *)aw_object_get(srq, AW_KIND_SRQ);
}

void aw_seen_set(struct aw_call_seen *seen)
{
	seen->is_set = true;
	seen->thread = pthread_self();
	aw_stack_take(&seen->stack);
}

static void qp_free(struct aw_object *object)
{
	struct aw_qp_shadow *qp = (struct aw_qp_shadow *)object;

	aw_qp_reset(qp);
	aw_batch_destroy(qp->batch);
	aw_queue_fini(&qp->sends);
	aw_queue_fini(&qp->recvs);
	aw_object_put(qp->srq);
	aw_object_put(qp->td);
	aw_object_put(qp->send_cq_shadow);
	pthread_mutex_destroy(&qp->lock);
	free(qp);
}

static void qp_forked(struct aw_object *object)
{
	struct aw_qp_shadow *qp = (struct aw_qp_shadow *)object;

	pthread_mutex_init(&qp->lock, NULL);
	aw_queue_forget(&qp->sends);
	aw_queue_forget(&qp->recvs);
}

/* Tells where the QPs of the CQ can have more completions than it has room for. */
static void cq_promise(const struct ibv_cq *handle, const struct aw_qp_shadow *qp, uint32_t wrs)
{
	struct aw_cq_shadow *cq = aw_cq_get(handle);
	char name[AW_OBJECT_NAME_MAX];
	uint64_t promised;

	if (!cq)
		return;
	pthread_mutex_lock(&cq->lock);
	promised = cq->room_promised += wrs;
	pthread_mutex_unlock(&cq->lock);
	aw_object_name(&cq->object, name);
	if (promised > (uint64_t)cq->cqe && promised - wrs <= (uint64_t)cq->cqe)
		aw_report(&(struct aw_report){ .rule = AW_RULE_CQ_SMALL,
					       .object = name,
					       .earlier = { { "the CQ was made here",
							      &cq->object.made } } },
			  "with QP 0x%x the QPs of this CQ hold up to %" PRIu64
			  " work requests, and the CQ %d completions",
			  qp->object.number, promised, cq->cqe);
	aw_object_put(&cq->object);
}

static void cq_release(const void *handle, uint32_t wrs)
{
	struct aw_cq_shadow *cq = aw_cq_get(handle);

	if (!cq)
		return;
	pthread_mutex_lock(&cq->lock);
	cq->room_promised -= cq->room_promised < wrs ? cq->room_promised : wrs;
	pthread_mutex_unlock(&cq->lock);
	aw_object_put(&cq->object);
}

void aw_qp_add(struct ibv_qp *handle, const struct ibv_qp_init_attr *attr)
{
	struct aw_qp_shadow *qp = calloc(1, sizeof(*qp));
	struct aw_pd_shadow *pd;

	if (!qp)
		return;
	qp->object = (struct aw_object){ .kind = AW_KIND_QP,
					 .handle = handle,
					 .context = handle->context,
					 .number = handle->qp_num,
					 .has_number = true,
					 .free = qp_free,
					 .forked = qp_forked };
	qp->qp = handle;
	qp->type = attr->qp_type;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->srq = attr->srq ? aw_object_get(attr->srq, AW_KIND_SRQ) : NULL;
	if (qp->srq)
		atomic_fetch_add(&((struct aw_srq_shadow *)qp->srq)->qps, 1);
	qp->cap = attr->cap;
	qp->is_all_signaled = attr->sq_sig_all;
	qp->state = IBV_QPS_RESET;
	pd = aw_pd_get(handle->pd);
	qp->pd = pd ? pd->parent : handle->pd;
	qp->td = pd && pd->td ? aw_object_get(pd->td, AW_KIND_TD) : NULL;
	qp->send_cq_shadow = attr->send_cq ? aw_object_get(attr->send_cq, AW_KIND_CQ) : NULL;
	qp->sends.due = qp->send_cq_shadow ? &((struct aw_cq_shadow *)qp->send_cq_shadow)->sends_due
					   : NULL;
	aw_object_put(pd ? &pd->object : NULL);
	pthread_mutex_init(&qp->lock, NULL);
	aw_object_add(&qp->object);
	if (attr->send_cq)
		cq_promise(attr->send_cq, qp, attr->cap.max_send_wr);
	if (attr->recv_cq && !attr->srq)
		cq_promise(attr->recv_cq, qp, attr->cap.max_recv_wr);
}

static void srq_free(struct aw_object *object)
{
	struct aw_srq_shadow *srq = (struct aw_srq_shadow *)object;

	aw_srq_end(srq);
	aw_queue_fini(&srq->queue);
	pthread_mutex_destroy(&srq->lock);
	free(srq);
}

static void srq_forked(struct aw_object *object)
{
	struct aw_srq_shadow *srq = (struct aw_srq_shadow *)object;

	pthread_mutex_init(&srq->lock, NULL);
	aw_queue_forget(&srq->queue);
}

void aw_srq_add(struct ibv_srq *handle, const struct ibv_srq_attr *attr, const struct ibv_cq *cq)
{
	struct aw_srq_shadow *srq = calloc(1, sizeof(*srq));
	struct aw_pd_shadow *pd;

	if (!srq)
		return;
	srq->object = (struct aw_object){ .kind = AW_KIND_SRQ,
					  .handle = handle,
					  .context = handle->context,
					  .free = srq_free,
					  .forked = srq_forked };
	srq->srq = handle;
	pd = aw_pd_get(handle->pd);
	srq->pd = pd ? pd->parent : handle->pd;
	aw_object_put(pd ? &pd->object : NULL);
	srq->attr = *attr;
	srq->cq = cq;
	pthread_mutex_init(&srq->lock, NULL);
	aw_object_add(&srq->object);
}

enum ibv_qp_state aw_qp_state(struct aw_qp_shadow *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = { .qp_state = qp->state };

	if (aw_real()->ibv_query_qp(qp->qp, &attr, IBV_QP_STATE, &init) != 0)
		return qp->state;
	return attr.qp_state;
}

void aw_qp_accepted(struct aw_qp_shadow *qp)
{
	pthread_mutex_lock(&qp->lock);
	aw_seen_set(&qp->passive);
	pthread_mutex_unlock(&qp->lock);
}

void aw_qp_accept_failed(struct aw_qp_shadow *qp)
{
	pthread_mutex_lock(&qp->lock);
	qp->passive.is_set = false;
	pthread_mutex_unlock(&qp->lock);
}

void aw_qp_reset(struct aw_qp_shadow *qp)
{
	pthread_mutex_lock(&qp->lock);
	aw_queue_clear(&qp->sends);
	aw_queue_clear(&qp->recvs);
	qp->failed.is_set = false;
	qp->accepted.is_set = false;
	qp->passive.is_set = false;
	qp->answered = 0;
	pthread_mutex_unlock(&qp->lock);
}

void aw_qp_end(struct aw_qp_shadow *qp)
{
	const bool can_complete = qp->sends.count > qp->answered && aw_qp_state(qp) == IBV_QPS_RTS;
	char name[AW_OBJECT_NAME_MAX];

	aw_object_name(&qp->object, name);
	pthread_mutex_lock(&qp->lock);
	if (can_complete && qp->sends.count > qp->answered) {
		const struct aw_wr *oldest = aw_queue_at(&qp->sends, qp->answered);
		const unsigned left = qp->sends.count - qp->answered;

		aw_report(
			&(struct aw_report){
				.rule = AW_RULE_QP_DESTROYED,
				.object = name,
				.earlier = { { "the oldest was posted here", &oldest->posted } } },
			"%s is destroyed in RTS with %u send%s under way: whether the peer gets them is undefined",
			name, left, left == 1 ? "" : "s");
	}
	pthread_mutex_unlock(&qp->lock);
	aw_qp_reset(qp);
	cq_release(qp->send_cq, qp->cap.max_send_wr);
	if (qp->srq)
		atomic_fetch_sub(&((struct aw_srq_shadow *)qp->srq)->qps, 1);
	else
		cq_release(qp->recv_cq, qp->cap.max_recv_wr);
}

void aw_srq_end(struct aw_srq_shadow *srq)
{
	pthread_mutex_lock(&srq->lock);
	aw_queue_clear(&srq->queue);
	pthread_mutex_unlock(&srq->lock);
}

struct awaiting {
	const struct ibv_cq *cq;
	struct aw_qp_shadow *qps[64]; /* each with a reference; more are not asked */
	unsigned count;
};

static void qp_collect(struct aw_object *object, void *arg)
{
	struct awaiting *awaiting = arg;
	struct aw_qp_shadow *qp = (struct aw_qp_shadow *)object;

	if (object->kind != AW_KIND_QP ||
	    (qp->send_cq != awaiting->cq && qp->recv_cq != awaiting->cq) ||
	    awaiting->count == sizeof(awaiting->qps) / sizeof(awaiting->qps[0]))
		return;
	atomic_fetch_add(&object->refs, 1);
	awaiting->qps[awaiting->count++] = qp;
}

static bool qp_awaits(struct aw_qp_shadow *qp, const struct ibv_cq *cq)
{
	struct aw_srq_shadow *srq = (struct aw_srq_shadow *)qp->srq;
	const bool sends = qp->send_cq == cq && qp->sends.signaled;
	const bool recvs = qp->recv_cq == cq && (srq ? srq->queue.count : qp->recvs.count);

	if (!sends && !recvs)
		return false;
	switch (aw_qp_state(qp)) {
	case IBV_QPS_RESET:
	case IBV_QPS_INIT:
		return false;
	case IBV_QPS_RTR:
		return recvs;
	default:
		return true;
	}
}

bool aw_cq_awaits(const struct ibv_cq *cq)
{
	struct awaiting awaiting = { .cq = cq };
	bool awaits = false;

	aw_object_each(qp_collect, &awaiting);
	for (unsigned i = 0; i < awaiting.count; i++) {
		awaits = awaits || qp_awaits(awaiting.qps[i], cq);
		aw_object_put(&awaiting.qps[i]->object);
	}
	return awaits;
}

/* The fields that the man page leaves undefined where the status is an error: a program that reads it sees nonsense. */
static void undefined_poison(struct ibv_wc *wc)
{
	wc->opcode = (enum ibv_wc_opcode)0x5a5a5a;
	wc->byte_len = 0xd7d7d7d7;
	wc->imm_data = 0xd7d7d7d7;
	wc->src_qp = 0xd7d7d7d7;
	wc->wc_flags = 0x5a5a5a5a;
	aw_mark_undefined(wc, sizeof(*wc));
	aw_mark_defined(&wc->wr_id, sizeof(wc->wr_id));
	aw_mark_defined(&wc->status, sizeof(wc->status));
	aw_mark_defined(&wc->vendor_err, sizeof(wc->vendor_err));
	aw_mark_defined(&wc->qp_num, sizeof(wc->qp_num));
}

static bool qp_complete_recv(struct aw_qp_shadow *qp, const struct ibv_wc *wc)
{
	struct aw_srq_shadow *srq = (struct aw_srq_shadow *)qp->srq;
	bool found;

	if (!srq)
		return aw_queue_complete(&qp->recvs, wc, false);
	pthread_mutex_lock(&srq->lock);
	found = aw_queue_complete(&srq->queue, wc, false);
	pthread_mutex_unlock(&srq->lock);
	return found;
}

/* True where the completion is of a receive: an error does not say. */
static bool is_receive(const struct aw_qp_shadow *qp, const struct ibv_cq *cq,
		       const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_SUCCESS)
		return wc->opcode & IBV_WC_RECV;
	if (qp->send_cq != qp->recv_cq)
		return qp->recv_cq == cq;
	return !aw_queue_find(&qp->sends, wc->wr_id, true);
}

/* A receive may be the peer's answer to the sends before it, and then they have arrived, whether their completions were polled or not. */
static void recv_completed(struct aw_qp_shadow *qp, const struct ibv_wc *wc)
{
	qp_complete_recv(qp, wc);
	if (wc->status != IBV_WC_SUCCESS)
		return;
	qp->passive.is_set = false;
	aw_queue_answered(&qp->sends, qp->answered);
	qp->answered = qp->sends.count;
}

static void send_completed(struct aw_qp_shadow *qp, const struct ibv_wc *wc)
{
	const unsigned before = qp->sends.count;
	unsigned gone;

	if (aw_queue_complete(&qp->sends, wc, true))
		qp->is_full = false;
	gone = before - qp->sends.count;
	qp->answered -= gone < qp->answered ? gone : qp->answered;
}

/* The SRQs of XRC of a CQ. */
struct xrc_srqs {
	const struct ibv_cq *cq;
	struct aw_srq_shadow *srqs[64]; /* each with a reference; more are not asked */
	unsigned count;
};

static void xrc_collect(struct aw_object *object, void *arg)
{
	struct xrc_srqs *of_cq = arg;
	struct aw_srq_shadow *srq = (struct aw_srq_shadow *)object;

	if (object->kind != AW_KIND_SRQ || srq->cq != of_cq->cq ||
	    of_cq->count == sizeof(of_cq->srqs) / sizeof(of_cq->srqs[0]))
		return;
	atomic_fetch_add(&object->refs, 1);
	of_cq->srqs[of_cq->count++] = srq;
}

/* A receive of XRC: the completion names the QP that it came by, and not the SRQ. */
static void xrc_completed(const struct ibv_cq *cq, const struct ibv_wc *wc)
{
	struct xrc_srqs of_cq = { .cq = cq };
	bool found = false;

	aw_object_each(xrc_collect, &of_cq);
	for (unsigned i = 0; i < of_cq.count; i++) {
		struct aw_srq_shadow *srq = of_cq.srqs[i];

		pthread_mutex_lock(&srq->lock);
		found = found || aw_queue_complete(&srq->queue, wc, false);
		pthread_mutex_unlock(&srq->lock);
		aw_object_put(&srq->object);
	}
}

void aw_cq_completed(const struct ibv_cq *cq, struct ibv_wc *wc)
{
	struct aw_object *object = aw_object_get_by_number(cq->context, AW_KIND_QP, wc->qp_num);
	struct aw_qp_shadow *qp = (struct aw_qp_shadow *)object;

	if (qp) {
		pthread_mutex_lock(&qp->lock);
		if (is_receive(qp, cq, wc))
			recv_completed(qp, wc);
		else
			send_completed(qp, wc);
		if (wc->status != IBV_WC_SUCCESS && !qp->failed.is_set) {
			aw_seen_set(&qp->failed);
			qp->failure = wc->status;
		}
		pthread_mutex_unlock(&qp->lock);
	}
	/* The program may have destroyed the QP, or have opened it alone. */
	if (!qp || qp->type == IBV_QPT_XRC_RECV)
		xrc_completed(cq, wc);
	aw_object_put(object);
	aw_mark_given(wc, sizeof(*wc));
	if (wc->status != IBV_WC_SUCCESS)
		undefined_poison(wc);
}
