// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The extended interface of a CQ: ibv_start_poll, ibv_next_poll and ibv_end_poll. The readers stay the device's own.
#include "check/faults/faults.h"
#include "check/hook/light.h"
#include "check/hook/ops.h"
#include "check/hook/overrun.h"
#include "check/hook/vary.h"
#include "check/model/qp.h"
#include "check/model/refusal_report.h"

#include <errno.h>

/* The only QP of a CQ whose completions do not tell the QP's number; 0: there is none, or more than one. */
struct only_qp {
	const struct ibv_cq *cq;
	uint32_t number;
	unsigned count;
};

static void only_qp_find(struct aw_object *object, void *arg)
{
	struct only_qp *only = arg;
	const struct aw_qp_shadow *qp = (struct aw_qp_shadow *)object;

	if (object->kind != AW_KIND_QP || (qp->send_cq != only->cq && qp->recv_cq != only->cq))
		return;
	only->number = object->number;
	only->count++;
}

static uint32_t qp_number(const struct aw_cq_shadow *shadow, struct ibv_cq_ex *cq)
{
	struct only_qp only = { .cq = ibv_cq_ex_to_cq(cq) };

	if (shadow->extended.read_qp_num)
		return shadow->extended.read_qp_num(cq);
	aw_object_each(only_qp_find, &only);
	return only.count == 1 ? only.number : 0;
}

/* The completion at which the program's poll stands. False: the plan has it lost. */
static bool current_complete(struct aw_cq_shadow *shadow, struct ibv_cq_ex *cq)
{
	const bool is_lost = aw_fault_planned() && aw_overrun_loses(shadow);
	struct ibv_wc wc = { .wr_id = cq->wr_id, .status = cq->status };

	wc.qp_num = qp_number(shadow, cq);
	if (cq->status == IBV_WC_SUCCESS) {
		wc.opcode = shadow->extended.read_opcode(cq);
		if (shadow->extended.read_byte_len)
			wc.byte_len = shadow->extended.read_byte_len(cq);
	}
	aw_refused_completed(ibv_cq_ex_to_cq(cq), &wc);
	if (!is_lost && aw_fault_planned() && aw_fault_completion(&wc, &wc.status))
		cq->status = wc.status;
	aw_cq_completed(ibv_cq_ex_to_cq(cq), &wc);
	return !is_lost;
}

/* The completions of a CQ that overruns are lost up to the last. */
static int current_give(struct aw_cq_shadow *shadow, struct ibv_cq_ex *cq)
{
	int err = 0;

	while (err == 0 && !current_complete(shadow, cq))
		err = shadow->extended.next_poll(cq);
	return err;
}

/* True, with errno: the plan has the poll fail. */
static bool fails(const char *call)
{
	if (!aw_fault_planned() || aw_hook_may(call))
		return false;
	aw_hook_failed(call, errno);
	return true;
}

static void poll_end(struct aw_cq_shadow *shadow, struct ibv_cq_ex *cq)
{
	shadow->extended.end_poll(cq);
	aw_overrun_settle(shadow);
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	struct aw_cq_shadow *shadow;
	int err = EINVAL;

	aw_inside_enter();
	shadow = aw_cq_get(ibv_cq_ex_to_cq(cq));
	if (shadow) {
		atomic_store_explicit(&shadow->poller, pthread_self(), memory_order_relaxed);
		aw_vary_pause(AW_VARY_POLL);
		shadow->vary_left = aw_vary_cq_poll(shadow, UINT32_MAX);
		if (fails("ibv_start_poll"))
			err = errno;
		else
			err = shadow->vary_left ? shadow->extended.start_poll(cq, attr) : ENOENT;
		if (err == 0) {
			aw_vary_cq_gave(shadow);
			err = current_give(shadow, cq);
			if (err)
				poll_end(shadow, cq);
		} else {
			shadow->arm_needs_poll = false; /* it was empty */
		}
		aw_object_put(&shadow->object);
	}
	aw_inside_leave();
	return err;
}

static int next_poll(struct ibv_cq_ex *cq)
{
	struct aw_cq_shadow *shadow;
	int err = EINVAL;

	aw_inside_enter();
	shadow = aw_cq_get(ibv_cq_ex_to_cq(cq));
	if (shadow) {
		if (fails("ibv_next_poll"))
			err = errno;
		else
			err = --shadow->vary_left ? shadow->extended.next_poll(cq) : ENOENT;
		if (err == 0)
			err = current_give(shadow, cq);
		else
			shadow->arm_needs_poll = false;
		aw_object_put(&shadow->object);
	}
	aw_inside_leave();
	return err;
}

static void end_poll(struct ibv_cq_ex *cq)
{
	struct aw_cq_shadow *shadow;

	aw_inside_enter();
	shadow = aw_cq_get(ibv_cq_ex_to_cq(cq));
	if (shadow) {
		poll_end(shadow, cq);
		aw_object_put(&shadow->object);
	}
	aw_inside_leave();
}

void aw_hook_cq_ex(struct ibv_cq_ex *cq)
{
	struct aw_cq_shadow *shadow = aw_cq_get(ibv_cq_ex_to_cq(cq));

	if (!shadow)
		return;
	shadow->extended = *cq;
	if (!aw_light_is_on()) {
		cq->start_poll = start_poll;
		cq->next_poll = next_poll;
		cq->end_poll = end_poll;
	}
	aw_object_put(&shadow->object);
}
