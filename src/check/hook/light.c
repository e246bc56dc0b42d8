// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/hook/light.h"

#include "check/base/marks.h"
#include "check/base/settings.h"
#include "check/explain/explain.h"
#include "check/faults/faults.h"
#include "check/hook/failure.h"
#include "check/hook/ops.h"
#include "check/report/report.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* The ops of the context that the thread used last: a search in the table of objects would cost more than a post. */
static _Thread_local struct {
	const struct ibv_context *context;
	unsigned generation;
	struct ibv_context_ops ops;
} last;

static atomic_uint generation = 1;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_on;

static void decide(void)
{
	is_on = !aw_check_settings()->vary_on && !aw_check_settings()->like.len &&
		!aw_fault_planned();
	for (unsigned rule = 0; rule < AW_RULES; rule++)
		is_on = is_on && !aw_report_wants((enum aw_rule)rule);
}

bool aw_light_is_on(void)
{
	pthread_once(&once, decide);
	return is_on;
}

void aw_light_forget(void)
{
	atomic_fetch_add_explicit(&generation, 1, memory_order_release);
}

static void ops_find(const struct ibv_context *context, unsigned now)
{
	struct aw_context_shadow *device = aw_ops_get(context);

	last.context = context;
	last.generation = now;
	last.ops = device->ops;
	aw_object_put(&device->object);
}

static const struct ibv_context_ops *ops_of(const struct ibv_context *context)
{
	const unsigned now = atomic_load_explicit(&generation, memory_order_acquire);

	if (last.context != context || last.generation != now)
		ops_find(context, now);
	return &last.ops;
}

static int light_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct ibv_send_wr *bad = wr;
	const int err = ops_of(qp->context)->post_send(qp, wr, &bad);
	struct aw_qp_shadow *shadow;

	if (!err)
		return 0;
	if (bad_wr)
		*bad_wr = bad;
	aw_inside_enter();
	shadow = aw_qp_get(qp);
	if (shadow)
		aw_failure_explain_send(shadow, bad, err);
	aw_object_put(shadow ? &shadow->object : NULL);
	aw_inside_leave();
	return err;
}

static int light_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct ibv_recv_wr *bad = wr;
	const int err = ops_of(qp->context)->post_recv(qp, wr, &bad);
	struct aw_qp_shadow *shadow;

	if (!err)
		return 0;
	if (bad_wr)
		*bad_wr = bad;
	aw_inside_enter();
	shadow = aw_qp_get(qp);
	if (shadow)
		aw_failure_explain_recv(shadow, bad, err);
	aw_object_put(shadow ? &shadow->object : NULL);
	aw_inside_leave();
	return err;
}

static int light_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			       struct ibv_recv_wr **bad_wr)
{
	struct ibv_recv_wr *bad = wr;
	const int err = ops_of(srq->context)->post_srq_recv(srq, wr, &bad);
	struct aw_srq_shadow *shadow;

	if (!err)
		return 0;
	if (bad_wr)
		*bad_wr = bad;
	aw_inside_enter();
	shadow = aw_srq_get(srq);
	if (shadow)
		aw_failure_explain_srq_recv(shadow, bad, err);
	aw_object_put(shadow ? &shadow->object : NULL);
	aw_inside_leave();
	return err;
}

static int light_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	const int count = ops_of(cq->context)->poll_cq(cq, num_entries, wc);

	if (count > 0)
		aw_mark_given(wc, (size_t)count * sizeof(*wc));
	for (int i = 0; i < count; i++) {
		if (wc[i].status == IBV_WC_SUCCESS)
			continue;
		aw_inside_enter();
		aw_failure_explain_completion(&wc[i], false);
		aw_inside_leave();
	}
	return count;
}

static int light_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	const int err = ops_of(cq->context)->req_notify_cq(cq, solicited_only);

	if (err) {
		aw_inside_enter();
		aw_hook_failed("ibv_req_notify_cq", err);
		aw_inside_leave();
	}
	return err;
}

void aw_light_context(struct ibv_context *context)
{
	aw_light_forget();
	context->ops.poll_cq = light_poll_cq;
	context->ops.req_notify_cq = light_req_notify_cq;
	context->ops.post_send = light_post_send;
	context->ops.post_recv = light_post_recv;
	context->ops.post_srq_recv = light_post_srq_recv;
}
