// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Life of a user-space QP, and its entry points: create, destroy, close.
#include "net/qp/uqp.h"

#include "base/clock.h"
#include "core/ack.h"
#include "net/base/io_now.h"
#include "net/mem/pool.h"
#include "net/qp/carrier.h"
#include "net/qp/cq_qps.h"
#include "net/qp/refusal.h"
#include "net/qp/rnr.h"
#include "net/qp/senders.h"
#include "net/qp/stat_qp.h"
#include "net/qp/uqp_sock.h"
#include "net/qp/varied.h"
#include "ring/lock.h"
#include "ring/once.h"
#include "ring/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct aw_table qps;
static struct aw_once qps_once = AW_ONCE_INIT;

static int make_table(void)
{
	int err = aw_table_init(&qps, AW_QP_MAX);

	if (err)
		return err;
	aw_uqp_fork_register(&qps);
	return 0;
}

static bool attr_valid(const struct aw_uqp_attr *a)
{
	return a->send_cq && a->recv_cq && a->send_wr_max <= AW_WR_MAX &&
	       a->recv_wr_max <= AW_WR_MAX && a->send_sge_max <= AW_SGE_MAX &&
	       a->recv_sge_max <= AW_SGE_MAX && a->inline_max <= AW_INLINE_MAX;
}

static size_t round16(size_t n)
{
	return (n + 15) & ~(size_t)15;
}

/* A message that was being received has no completion. */
static void forget_xrc_srq(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (qp->attr.xrc_done)
		aw_xrc_flush(qp->attr.xrc_done, AW_XRC_DONE_MAX);
	if (qp->xrc_srq)
		aw_xrc_put(qp->xrc_srq);
	qp->xrc_srq = NULL;
}

/* One allocation holds both queues; its pages are touched only when they are used. */
static int make_queues(struct aw_uqp *qp)
{
	const struct aw_uqp_attr *a = &qp->attr;
	size_t sq = round16(aw_sq_mem_size(a->send_wr_max, a->send_sge_max, a->inline_max));
	size_t rq = round16(aw_rq_mem_size(a->srq ? 0 : a->recv_wr_max, a->recv_sge_max));

	return aw_mem_get(&qp->mem, a->memory, AW_MEM_QP, sq + rq);
}

/* Initializes the core and the RQ over the memory, whose content is lost. */
static void init_queues(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	const struct aw_uqp_attr *a = &qp->attr;
	uint8_t *mem = qp->mem.at;
	size_t sq = round16(aw_sq_mem_size(a->send_wr_max, a->send_sge_max, a->inline_max));
	const struct aw_qp_mem m = {
		.sq = mem,
		.sq_capacity = a->send_wr_max,
		.sge_max = a->send_sge_max,
		.inline_max = a->inline_max,
		.srq = a->srq || a->xrc,
	};

	aw_rq_init(&qp->rq, mem + sq, a->srq ? 0 : a->recv_wr_max, a->recv_sge_max);
	aw_qp_init(&qp->core, &m, aw_varied_ops(qp), qp, a->pd);
	if (a->srq)
		qp->core.recv_pd = a->srq->pd;
	qp->core.sig_all = a->sig_all;
	qp->core.tells_each = aw_counters_any(&qp->counters);
	qp->core.unreliable = a->uc;
	qp->core.xrc = a->xrc;
	if (a->xrc == AW_XRC_INITIATOR)
		qp->core.remote_access = 0;
	aw_stat_init(qp);
}

/* A UD QP joins no CQ: pollers serve its socket, which is shared (net/ud/ud.h). */
static int join_cqs(struct aw_uqp *qp)
{
	int err = qp->ud ? 0 : aw_cq_join_qp(qp->attr.send_cq, qp);

	if (err || qp->ud || qp->attr.recv_cq == qp->attr.send_cq)
		return err;
	err = aw_cq_join_qp(qp->attr.recv_cq, qp);
	if (err)
		aw_cq_leave_qp(qp->attr.send_cq, qp);
	return err;
}

static void leave_cqs(struct aw_uqp *qp)
{
	if (qp->ud)
		return;
	aw_cq_leave_qp(qp->attr.send_cq, qp);
	if (qp->attr.recv_cq != qp->attr.send_cq)
		aw_cq_leave_qp(qp->attr.recv_cq, qp);
}

static void forget_cqes(struct aw_uqp *qp)
{
	aw_cq_forget(qp->attr.send_cq, &qp->of_cq);
	aw_cq_forget(qp->attr.recv_cq, &qp->of_cq);
	atomic_store_explicit(&qp->of_cq.unpolled, 0, memory_order_relaxed);
}

static void destroy_kind(struct aw_uqp *qp)
{
	if (qp->attr.kind)
		qp->attr.kind->destroy(qp);
}

/* Inserts the QP into the table, and takes its number. */
static int enlist(struct aw_uqp *qp)
{
	qp->handle = aw_table_insert(&qps, qp, NULL);
	if (qp->handle == AW_TABLE_NONE)
		return ENOMEM;
	qp->qpn = qp->handle + AW_QPN_FIRST;
	int err = qp->attr.kind ? qp->attr.kind->open(qp) : 0;

	if (err)
		aw_table_remove_wait(&qps, qp->handle);
	return err;
}

int aw_uqp_create(const struct aw_uqp_attr *attr, struct aw_uqp **out)
{
	if (!attr_valid(attr))
		return EINVAL;
	int err = aw_once_run(&qps_once, make_table);

	if (err)
		return err;
	struct aw_uqp *qp = calloc(1, sizeof(*qp));

	if (!qp)
		return ENOMEM;
	qp->attr = *attr;
	qp->of_mw = (struct aw_mw_user){ .pd = attr->pd, .core = &qp->core };
	qp->fd = -1;
	err = aw_varied_create(&qp->varied);
	if (err)
		goto free_qp;
	qp->in = qp->out = aw_varied_carrier(qp);
	aw_latch_init(&qp->lock);
	err = make_queues(qp);
	if (err)
		goto free_varied;
	aw_lock(&qp->lock);
	init_queues(qp);
	aw_unlock(&qp->lock);
	err = qp->attr.kind ? qp->attr.kind->create(qp) : 0;
	if (err)
		goto free_queues;
	err = join_cqs(qp);
	if (err)
		goto free_kind;
	err = enlist(qp);
	if (err)
		goto leave;
	aw_stat_begin_qp(qp);
	*out = qp;
	return 0;

leave:
	leave_cqs(qp);
free_kind:
	destroy_kind(qp);
free_queues:
	aw_mem_put(&qp->mem);
free_varied:
	aw_varied_destroy(qp->varied);
free_qp:
	free(qp);
	return err;
}

/*
 * Called before the program ends the stream: posts that wait are sent, and a Terminate is sent without the answers that are
 * due before it. In the roce persona a message that finds no receive is refused: an adapter has received what has come by
 * now, and the peer takes it for received, since this end's TCP has it.
 */
static void flush_before_end(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (qp->by_rc && qp->fd >= 0 && !qp->peer_gone && qp->core.state == AW_QP_RTS &&
	    !aw_uqp_is_inherited(qp)) {
		qp->leaves = true;
		aw_rnr_end(qp);
		aw_uqp_serve(qp);
	}
	if (aw_qp_drop_answers(&qp->core))
		aw_uqp_push(qp);
	else
		aw_uqp_flush(qp);
}

/*
 * The order matters. First the number is given back, so that neither a peer nor its kind reaches
 * the QP; then the QP sends what it holds; then it leaves the table, so that the progress thread cannot
 * find it; then its socket leaves every epoll set; then it leaves its CQs, whose lock a poller
 * holds while it serves the QP.
 */
void aw_uqp_destroy(struct aw_uqp *qp)
{
	if (qp->attr.kind)
		qp->attr.kind->close(qp);
	aw_uqp_with(qp->handle, flush_before_end);
	aw_uqp_with(qp->handle, aw_uqp_note_end);
	aw_table_remove_wait(&qps, qp->handle);
	aw_lock(&qp->lock);
	aw_uqp_drop_socket(qp);
	forget_xrc_srq(qp);
	aw_unlock(&qp->lock);
	leave_cqs(qp);
	aw_lock(&qp->lock);
	while (qp->delivering)
		aw_latch_wait(&qp->delivered, &qp->lock);
	aw_unlock(&qp->lock);
	aw_mw_forget_qp(&qp->of_mw);
	forget_cqes(qp);
	aw_stat_give(qp->stat);
	aw_latch_fini(&qp->lock);
	destroy_kind(qp);
	free(qp->reads);
	aw_mem_put(&qp->mem);
	aw_varied_destroy(qp->varied);
	free(qp);
}

struct aw_uqp *aw_uqp_at(uint32_t handle)
{
	return aw_once_run(&qps_once, make_table) ? NULL : aw_table_get(&qps, handle);
}

void aw_uqp_put(struct aw_uqp *qp)
{
	aw_table_put(&qps, qp->handle);
}

/* Calls the listeners with no lock held. */
static void deliver(struct aw_uqp *qp, uint32_t events) AW_REQUIRES(qp->lock)
{
	aw_uqp_fn *fn[2] = { qp->listener[0], qp->listener[1] };
	void *arg[2] = { qp->listener_arg[0], qp->listener_arg[1] };

	qp->events_told |= events;
	aw_access_refusal_log(qp, events);
	aw_unlock(&qp->lock);
	for (int i = 0; i < 2; i++)
		if (fn[i])
			fn[i](arg[i], events);
	aw_lock(&qp->lock);
}

/*
 * Passes completions of a target on, once those of its peer's initiators here have come that are older (net/qp/senders.h). Other
 * threads that serve the target meanwhile leave theirs to this one.
 */
static __attribute__((noinline, cold)) void settle_xrc(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	struct aw_xrc_done *done = qp->attr.xrc_done;

	done->settling = true;
	while (done->count > 0) {
		uint32_t count = done->count, peer_qpn = qp->peer_qpn;

		aw_unlock(&qp->lock);
		aw_senders_serve(peer_qpn);
		aw_lock(&qp->lock);
		aw_xrc_flush(done, count);
	}
	done->settling = false;
}

static __attribute__((noinline, cold)) void deliver_due(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	uint32_t events;

	while ((events = qp->events_due & ~qp->events_told)) {
		qp->delivering = true;
		deliver(qp, events);
	}
	aw_latch_wake(&qp->delivered);
	qp->delivering = false;
}

/*
 * Delivers the events that are due, then releases the lock. One thread at a time delivers, also the
 * events that become due meanwhile, so no listener gets the end before the beginning.
 */
void aw_uqp_unlock(struct aw_uqp *qp)
{
	if (qp->attr.xrc_done && !qp->attr.xrc_done->settling)
		settle_xrc(qp);
	aw_stat_unlock(qp);
	if (!qp->delivering && (qp->events_due & ~qp->events_told))
		deliver_due(qp);
	aw_unlock(&qp->lock);
}

void aw_uqp_listen(struct aw_uqp *qp, enum aw_uqp_owner owner, aw_uqp_fn *fn, void *arg)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();

	aw_lock(&qp->lock);
	while (qp->delivering)
		aw_latch_wait(&qp->delivered, &qp->lock);
	qp->listener[owner] = fn;
	qp->listener_arg[owner] = arg;
	uint32_t missed = qp->events_told;

	aw_unlock(&qp->lock);
	if (fn && missed)
		fn(arg, missed);
}

void aw_uqp_close(struct aw_uqp *qp)
{
	aw_lock(&qp->lock);
	if (qp->attached)
		aw_qp_close(&qp->core);
	aw_rnr_end(qp);
	aw_uqp_serve(qp);
	aw_uqp_unlock(qp);
}

void aw_uqp_abort(struct aw_uqp *qp)
{
	aw_lock(&qp->lock);
	/* An adapter has received what has come by now. */
	if (!qp->by_rc && qp->core.state < AW_QP_TERMINATE)
		aw_uqp_serve(qp);
	flush_before_end(qp);
	aw_qp_abort(&qp->core, AW_OK);
	aw_uqp_serve(qp);
	aw_uqp_unlock(qp);
}

void aw_uqp_disconnect(struct aw_uqp *qp)
{
	aw_lock(&qp->lock);
	qp->tells_delivered = true;
	aw_unlock(&qp->lock);
	aw_uqp_close(qp);
	aw_uqp_abort(qp);
	aw_lock(&qp->lock);
	if (qp->fd < 0 && !qp->lingers)
		aw_uqp_note_delivered(qp);
	aw_uqp_unlock(qp);
}

void aw_uqp_on_delivered(uint32_t handle, uint32_t number)
{
	struct aw_uqp *qp = aw_table_get(&qps, handle);

	if (!qp)
		return;
	aw_lock(&qp->lock);
	if (qp->lingers == number)
		aw_uqp_note_delivered(qp);
	aw_uqp_unlock(qp);
	aw_table_put(&qps, handle);
}

void aw_uqp_give_up(struct aw_uqp *qp, enum aw_wc_status status)
{
	aw_lock(&qp->lock);
	aw_uqp_flush(qp);
	aw_qp_give_up(&qp->core, status);
	aw_uqp_serve(qp);
	aw_uqp_unlock(qp);
}

void aw_uqp_drop_posts(struct aw_uqp *qp)
{
	aw_lock(&qp->lock);
	qp->posts_drop = true;
	aw_uqp_push(qp);
	aw_uqp_unlock(qp);
}

void aw_uqp_halt(struct aw_uqp *qp, bool halts, bool tells)
{
	aw_lock(&qp->lock);
	qp->core.sq_halts = halts;
	qp->drain_asked = halts && tells;
	if (halts)
		(void)aw_ack_is_awaited(&qp->core);
	qp->events_due &= ~(uint32_t)AW_UQP_DRAINED;
	qp->events_told &= ~(uint32_t)AW_UQP_DRAINED;
	aw_uqp_push(qp);
	aw_uqp_unlock(qp);
}

void aw_uqp_reset(struct aw_uqp *qp)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();

	aw_lock(&qp->lock);
	flush_before_end(qp);
	aw_uqp_drop_socket(qp);
	/* The listeners hear that the stream has ended before it is forgotten. */
	aw_uqp_note_end(qp);
	aw_uqp_unlock(qp);
	aw_lock(&qp->lock);
	while (qp->delivering)
		aw_latch_wait(&qp->delivered, &qp->lock);
	free(qp->reads);
	qp->reads = NULL;
	aw_mw_forget_qp(&qp->of_mw);
	forget_xrc_srq(qp);
	init_queues(qp);
	qp->attached = qp->by_rc = qp->lost = qp->peer_gone = qp->recall_due = qp->posts_drop =
		qp->drain_asked = false;
	qp->fail_ns = 0;
	qp->drops_told = 0;
	qp->events_due = qp->events_told = 0;
	aw_unlock(&qp->lock);
	forget_cqes(qp);
}

enum aw_qp_state aw_uqp_state(struct aw_uqp *qp)
{
	aw_lock(&qp->lock);
	enum aw_qp_state state = qp->core.state;

	aw_unlock(&qp->lock);
	return state;
}

void aw_uqp_unlend(const void *pd, const void *start, size_t len)
{
	/* A QP that still reads the region took a batch before it found the region. */
	if (aw_batches_out() == 0)
		return;
	uint32_t end = aw_table_end(&qps);
	struct aw_uqp *qp;

	for (uint32_t at = 0; (qp = aw_table_walk(&qps, &at, end)); aw_table_put(&qps, at++)) {
		/* The peer of an XRC target reads from MRs of more than one PD. */
		if ((qp->attr.pd != pd && !qp->attr.xrcd) || aw_uqp_is_inherited(qp))
			continue;
		aw_lock(&qp->lock);
		if (qp->batch)
			aw_batch_unlend(qp->batch, start, len);
		aw_unlock(&qp->lock);
	}
}

void aw_uqp_with(uint32_t handle, void (*act)(struct aw_uqp *qp))
{
	struct aw_uqp *qp = aw_table_get(&qps, handle);

	if (!qp)
		return;
	aw_lock(&qp->lock);
	act(qp);
	aw_uqp_unlock(qp);
	aw_table_put(&qps, handle);
}

void aw_uqp_each(void (*act)(struct aw_uqp *qp))
{
	uint32_t end = aw_table_end(&qps);
	struct aw_uqp *qp;

	for (uint32_t at = 0; (qp = aw_table_walk(&qps, &at, end)); aw_table_put(&qps, at++)) {
		if (aw_uqp_is_inherited(qp))
			continue;
		aw_lock(&qp->lock);
		act(qp);
		aw_uqp_unlock(qp);
	}
}

static void serve_attached(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (qp->fd >= 0)
		aw_uqp_serve(qp);
}

/*
 * Called by a waiter, which has slept: it may as well wait for the thread that holds the QP's lock.
 */
void aw_uqp_on_wake(uint32_t handle)
{
	aw_uqp_with(handle, serve_attached);
}

void aw_uqp_on_flush(uint32_t handle)
{
	aw_uqp_with(handle, aw_uqp_flush);
}

static void flush_late(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (!aw_credit_posts_are_late(&qp->deferral.posts, aw_now_ns()))
		return;
	aw_credit_posts_were_late(&qp->deferral.posts);
	aw_uqp_flush(qp);
}

void aw_uqp_on_late(uint32_t handle)
{
	aw_uqp_with(handle, flush_late);
}

void aw_uqp_on_exit(uint32_t handle)
{
	struct aw_uqp *qp = aw_table_get(&qps, handle);

	if (!qp)
		return;
	if (aw_trylock(&qp->lock) == 0) {
		aw_uqp_flush(qp);
		aw_uqp_unlock(qp);
	}
	aw_table_put(&qps, handle);
}
