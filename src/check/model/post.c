// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "check/model/post.h"

#include "check/base/newer.h"
#include "check/report/report.h"

#include <inttypes.h>
#include <stdio.h>

static void rule_report(const struct aw_qp_shadow *qp, enum aw_rule rule, const char *what,
			const struct aw_stack *earlier, const char *why)
{
	char name[AW_OBJECT_NAME_MAX];

	aw_object_name(&qp->object, name);
	aw_report(&(struct aw_report){ .rule = rule,
				       .object = name,
				       .earlier = { { what, earlier } } },
		  "%s", why);
}

static bool writes_memory(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* max_rd_atomic bounds these together. */
static bool is_answered(enum ibv_wr_opcode opcode)
{
	return writes_memory(opcode) || opcode == IBV_WR_ATOMIC_WRITE ||
	       opcode == AW_NEWER_WR_FLUSH;
}

/* The QP or SRQ of a WR, and its PD. */
struct owner {
	const struct aw_object *object;
	const void *pd;
};

/* Tells an SGE that no MR covers. */
static void sge_judge(const struct owner *owner, const struct ibv_sge *sge, bool is_sink)
{
	struct aw_object *object =
		aw_object_get_by_number(owner->object->context, AW_KIND_MR, sge->lkey);
	const struct aw_mr_shadow *mr = (struct aw_mr_shadow *)object;
	char name[AW_OBJECT_NAME_MAX], of_mr[AW_OBJECT_NAME_MAX];
	struct aw_report report = { .object = name };

	aw_object_name(owner->object, name);
	if (sge->length == 0) {
		aw_object_put(object);
		return;
	}
	if (!mr) {
		report.rule = AW_RULE_LKEY_UNKNOWN;
		aw_report(&report,
			  "the SGE at 0x%" PRIx64 " of %u bytes names lkey 0x%x, which no MR has",
			  sge->addr, sge->length, sge->lkey);
		return;
	}
	aw_object_name(object, of_mr);
	report.earlier[0].what = "the MR was registered here";
	report.earlier[0].stack = &object->made;
	if (mr->pd != owner->pd) {
		report.rule = AW_RULE_LKEY_UNKNOWN;
		aw_report(&report,
			  "the SGE at 0x%" PRIx64
			  " of %u bytes names the %s, which belongs to another PD than %s",
			  sge->addr, sge->length, of_mr, name);
	} else if (sge->addr < mr->start || sge->addr >= mr->end ||
		   sge->length > mr->end - sge->addr) {
		report.rule = AW_RULE_SGE_OUTSIDE_MR;
		aw_report(&report,
			  "the SGE at 0x%" PRIx64
			  " of %u bytes is not inside the %s, which covers 0x%" PRIx64
			  " to 0x%" PRIx64,
			  sge->addr, sge->length, of_mr, mr->start, mr->end);
	} else if (is_sink && !(mr->access & IBV_ACCESS_LOCAL_WRITE)) {
		report.rule = AW_RULE_LOCAL_ACCESS;
		aw_report(&report,
			  "the SGE at 0x%" PRIx64
			  " is written, but the %s was registered without IBV_ACCESS_LOCAL_WRITE",
			  sge->addr, of_mr);
	}
	aw_object_put(object);
}

static void sges_judge(const struct owner *owner, const struct ibv_sge *sges, int count,
		       uint32_t max, bool is_sink)
{
	char name[AW_OBJECT_NAME_MAX];

	aw_object_name(owner->object, name);
	if (count < 0 || (uint32_t)count > max) {
		aw_report(
			&(struct aw_report){ .rule = AW_RULE_SGE_TOO_MANY,
					     .object = name,
					     .earlier = { { "made here", &owner->object->made } } },
			"num_sge is %d, but %s was created for at most %u SGEs a work request",
			count, name, max);
		return;
	}
	for (int i = 0; i < count; i++)
		sge_judge(owner, &sges[i], is_sink);
}

static void inline_judge(const struct aw_qp_shadow *qp, const struct ibv_send_wr *wr)
{
	uint64_t len = 0;
	char why[160];

	for (int i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	if (len <= qp->cap.max_inline_data)
		return;
	snprintf(why, sizeof(why),
		 "%" PRIu64
		 " bytes are posted inline, but QP 0x%x was created with max_inline_data %u",
		 len, qp->object.number, qp->cap.max_inline_data);
	rule_report(qp, AW_RULE_INLINE_TOO_LARGE, "made here", &qp->object.made, why);
}

/*
 * Tells a post of so many sends for which the SQ has no room. To post until it is full, and then to poll, is lawful: told is
 * the post behind that one, and one for which polling cannot make room.
 */
static void room_judge(struct aw_qp_shadow *qp, const struct ibv_send_wr *wr)
{
	const struct aw_wr_queue *sends = &qp->sends;
	const bool was_full = qp->is_full;
	bool is_signaled = sends->signaled != 0;
	unsigned count = sends->count;
	char why[200];

	for (; wr && count < qp->cap.max_send_wr; wr = wr->next, count++)
		is_signaled = is_signaled || qp->is_all_signaled ||
			      wr->send_flags & IBV_SEND_SIGNALED;
	if (!wr)
		return;
	qp->is_full = true;
	if (is_signaled && !was_full)
		return;
	if (is_signaled)
		snprintf(
			why, sizeof(why),
			"the SQ is full, as the post before found: its %u work requests (max_send_wr %u) have no completion that was polled",
			sends->count, qp->cap.max_send_wr);
	else
		snprintf(
			why, sizeof(why),
			"the SQ is full: none of its %u work requests is signaled, so that no completion can ever free them",
			count);
	rule_report(qp, is_signaled ? AW_RULE_SQ_UNPOLLED : AW_RULE_SQ_UNSIGNALED,
		    "the oldest was posted here",
		    sends->count ? &sends->wrs[sends->head]->posted : NULL, why);
}

static void again_judge(const struct aw_qp_shadow *qp, const struct ibv_send_wr *wr)
{
	char why[200];

	if (!qp->accepted.is_set || qp->accepted_first != wr || qp->accepted_wr_id != wr->wr_id)
		return;
	snprintf(why, sizeof(why),
		 "the work request of wr_id 0x%" PRIx64
		 " is posted again, though the earlier post accepted it: bad_wr named a later one",
		 wr->wr_id);
	rule_report(qp, AW_RULE_POSTED_AGAIN, "the earlier post", &qp->accepted.stack, why);
}

/* Tells a post by the thread that polled an error of the QP before. */
static void failure_judge(struct aw_qp_shadow *qp)
{
	char why[200];

	if (!qp->failed.is_set || !pthread_equal(qp->failed.thread, pthread_self()) ||
	    aw_qp_state(qp) != IBV_QPS_ERR)
		return;
	snprintf(
		why, sizeof(why),
		"a post to a QP in ERR, whose completion with status %d (%s) the same thread has polled: it can only be flushed",
		qp->failure, ibv_wc_status_str(qp->failure));
	rule_report(qp, AW_RULE_STATUS_IGNORED, "the completion was polled here", &qp->failed.stack,
		    why);
}

/* Tells the first send of a passive end that has received nothing. */
static void passive_judge(struct aw_qp_shadow *qp)
{
	if (!qp->passive.is_set)
		return;
	qp->passive.is_set = false;
	rule_report(
		qp, AW_RULE_PASSIVE_FIRST, "the connection was accepted here", &qp->passive.stack,
		"the passive end of a connection posts a send before it has polled a receive: an iWARP adapter of MPA revision 1 "
		"may not send it before the first message of the other end has come");
}

static const char *state_name(enum ibv_qp_state state)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

	return state <= IBV_QPS_ERR ? names[state] : "an unknown state";
}

/* Tells a post in a state that is too early. The state by the program's calls is asked again, since rdma_cm moves QPs as well. */
static void state_judge(struct aw_qp_shadow *qp, enum ibv_qp_state least, const char *what)
{
	enum ibv_qp_state state = qp->state;
	char why[120];

	if (state >= least)
		return;
	state = aw_qp_state(qp);
	qp->state = state;
	if (state >= least)
		return;
	snprintf(why, sizeof(why), "%s needs %s, and QP 0x%x is in %s", what, state_name(least),
		 qp->object.number, state_name(state));
	rule_report(qp, AW_RULE_WRONG_STATE, "made here", &qp->object.made, why);
}

/* Tells a send whose completion its CQ has no room for, unless some are polled before it comes. */
static void cq_judge(const struct aw_qp_shadow *qp)
{
	const struct aw_cq_shadow *cq = (struct aw_cq_shadow *)qp->send_cq_shadow;
	char why[200];
	unsigned due;

	if (!cq)
		return;
	due = atomic_load_explicit(&cq->sends_due, memory_order_relaxed);
	if (due <= (unsigned)cq->cqe)
		return;
	snprintf(
		why, sizeof(why),
		"%u signaled sends are under way, and the CQ, of which the program has not polled their "
		"completions, holds %d",
		due, cq->cqe);
	rule_report(qp, AW_RULE_CQ_OVERRUN, "the CQ was made here", &cq->object.made, why);
}

static void send_judge(struct aw_qp_shadow *qp, const struct ibv_send_wr *wr)
{
	if (wr->send_flags & IBV_SEND_INLINE)
		inline_judge(qp, wr);
	if (!(wr->send_flags & IBV_SEND_INLINE))
		sges_judge(&(struct owner){ &qp->object, qp->pd }, wr->sg_list, wr->num_sge,
			   qp->cap.max_send_sge, writes_memory(wr->opcode));
	if (qp->has_rd_atomic && qp->rd_atomic == 0 && is_answered(wr->opcode))
		rule_report(
			qp, AW_RULE_RD_ATOMIC_EXCEEDED, "made here", &qp->object.made,
			"a Read, an atomic or a flush is posted, but max_rd_atomic (ORD) of the QP is 0");
}

static struct aw_remote remote_of(const struct ibv_send_wr *wr)
{
	struct aw_remote remote = { .is_set = true };

	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_WRITE:
		remote.rkey = wr->wr.rdma.rkey;
		remote.addr = wr->wr.rdma.remote_addr;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		remote.rkey = wr->wr.atomic.rkey;
		remote.addr = wr->wr.atomic.remote_addr;
		break;
	default:
		return (struct aw_remote){ 0 };
	}
	for (int i = 0; i < wr->num_sge; i++)
		remote.length += wr->sg_list[i].length;
	/* ibv_wr_atomic_write has no SGEs. */
	if (wr->opcode == IBV_WR_ATOMIC_WRITE)
		remote.length = sizeof(uint64_t);
	return remote;
}

void aw_post_send_begin(struct aw_qp_shadow *qp, const struct ibv_send_wr *wr)
{
	aw_td_enter(qp->td);
	pthread_mutex_lock(&qp->lock);
	state_judge(qp, IBV_QPS_RTS, "a send");
	failure_judge(qp);
	passive_judge(qp);
	again_judge(qp, wr);
	room_judge(qp, wr);
	for (; wr; wr = wr->next) {
		send_judge(qp, wr);
		aw_queue_push(&qp->sends, &(struct aw_wr_posted){
						  .owner = &qp->object,
						  .posted_as = wr,
						  .wr_id = wr->wr_id,
						  .opcode = wr->opcode,
						  .remote = remote_of(wr),
						  .is_signaled = qp->is_all_signaled ||
								 wr->send_flags & IBV_SEND_SIGNALED,
						  .is_inline = wr->send_flags & IBV_SEND_INLINE,
						  .is_fenced = wr->send_flags & IBV_SEND_FENCE,
						  .sges = wr->sg_list,
						  .sge_count = wr->num_sge,
					  });
	}
}

void aw_post_send_end(struct aw_qp_shadow *qp, const struct ibv_send_wr *wr,
		      const struct ibv_send_wr *bad)
{
	qp->accepted.is_set = false;
	if (bad) {
		aw_queue_unpush(&qp->sends, bad);
		if (bad != wr) {
			aw_seen_set(&qp->accepted);
			qp->accepted_first = wr;
			qp->accepted_wr_id = wr->wr_id;
		}
	}
	cq_judge(qp);
	pthread_mutex_unlock(&qp->lock);
	aw_td_leave(qp->td);
}

static void recv_push(struct aw_wr_queue *queue, const struct owner *owner,
		      const struct ibv_recv_wr *wr, uint32_t sge_max)
{
	sges_judge(owner, wr->sg_list, wr->num_sge, sge_max, true);
	aw_queue_push(queue, &(struct aw_wr_posted){ .owner = owner->object,
						     .posted_as = wr,
						     .wr_id = wr->wr_id,
						     .is_recv = true,
						     .is_signaled = true,
						     .sges = wr->sg_list,
						     .sge_count = wr->num_sge });
}

void aw_post_recv_begin(struct aw_qp_shadow *qp, const struct ibv_recv_wr *wr)
{
	aw_td_enter(qp->td);
	pthread_mutex_lock(&qp->lock);
	state_judge(qp, IBV_QPS_INIT, "a receive");
	failure_judge(qp);
	for (; wr; wr = wr->next)
		recv_push(&qp->recvs, &(struct owner){ &qp->object, qp->pd }, wr,
			  qp->cap.max_recv_sge);
}

void aw_post_recv_end(struct aw_qp_shadow *qp, const struct ibv_recv_wr *bad)
{
	if (bad)
		aw_queue_unpush(&qp->recvs, bad);
	pthread_mutex_unlock(&qp->lock);
	aw_td_leave(qp->td);
}

void aw_post_srq_begin(struct aw_srq_shadow *srq, const struct ibv_recv_wr *wr)
{
	pthread_mutex_lock(&srq->lock);
	for (; wr; wr = wr->next)
		recv_push(&srq->queue, &(struct owner){ &srq->object, srq->pd }, wr,
			  srq->attr.max_sge);
}

void aw_post_srq_end(struct aw_srq_shadow *srq, const struct ibv_recv_wr *bad)
{
	if (bad)
		aw_queue_unpush(&srq->queue, bad);
	pthread_mutex_unlock(&srq->lock);
}
