// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Does what serve.c decides.
#include "net/qp/uqp_progress.h"

#include "base/clock.h"
#include "net/base/io_now.h"
#include "net/cq/channel_set.h"
#include "net/mem/pool.h"
#include "net/progress/engine.h"
#include "net/qp/flush.h"
#include "net/qp/replied.h"
#include "net/qp/serving.h"
#include "net/qp/uqp_sock.h"
#include "net/qp/watched.h"
#include "ring/lock.h"
#include "ring/table.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>

/* Most QPs that one tick looks at and leaves where they are; where there are thousands, the next ticks go on. */
#define LOOKS_MAX 1024

/* These are only for the progress thread. */
static uint32_t looks_due; /* QPs not yet looked at in this walk over the list */
static struct epoll_event ready[LOOKS_MAX]; /* found in a channel's set */
static uint32_t due[2 * LOOKS_MAX], due_count; /* handles of QPs that the tick serves next */
static uint64_t tick_ns; /* when it began */
static pthread_once_t registered = PTHREAD_ONCE_INIT;

/* Leaves an event in place of what has woken a program of watchers (net/qp/watched.h). */
static void serve(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	struct aw_channel *channel = qp->serving.watched_by;

	if (!channel) {
		aw_uqp_serve(qp);
		return;
	}
	const struct aw_watched_seen before = aw_watched_see(qp);
	uint32_t raised = aw_cq_pushes_of_thread().events;

	aw_watched_moves(qp);
	aw_uqp_serve(qp);
	const struct aw_watched_seen now = aw_watched_see(qp);
	bool moved = aw_watched_have_moved(&before, &now);

	if ((moved || now.bells != before.bells) && aw_cq_pushes_of_thread().events == raised &&
	    aw_watched_wake(qp, channel) && moved) {
		aw_eventful_end(&qp->serving.eventful);
		aw_serving_look_again();
	}
	atomic_store(&channel->moving, AW_CHANNEL_NONE);
	aw_watched_served(qp);
}

/*
 * A message that comes before the program has taken the last event, or between that and its arming of the CQ, raises no event and
 * says nothing of what the next will do. The program may have taken this one's event, polled the CQ and armed it before this
 * thread looks again, so the CQ does not tell what was raised.
 */
static void serve_and_count(struct aw_uqp *qp, const struct aw_channel *channel, uint64_t now_ns)
	AW_REQUIRES(qp->lock)
{
	bool awaits_program = channel && (aw_channel_is_filled(channel) ||
					  now_ns < channel->took_ns + AW_ARMING_NS);
	const struct aw_cq_pushes before = aw_cq_pushes_of_thread();
	uint32_t armed = aw_serving_armed(qp);
	uint64_t pos = qp->core.rx_pos;

	serve(qp);
	const struct aw_cq_pushes now = aw_cq_pushes_of_thread();

	if (qp->core.rx_pos == pos || (armed == 0 && awaits_program && now.cqes != before.cqes))
		return;
	aw_eventful_count(&qp->serving.eventful, now.events != before.events);
}

/*
 * The channel is chosen before the QP is served, because serving may disarm a CQ. A QP that is not served stays readable, for
 * the threads that it goes to.
 */
static void serve_or_give(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	uint64_t now = aw_now_ns();
	struct aw_channel *channel;

	if (qp->fd < 0)
		return;
	const struct aw_serve_seen seen = aw_serving_at_arrival(qp, now, &channel);
	const struct aw_serve_plan plan = aw_serve_plan(AW_SERVE_ARRIVAL, &seen, now);

	if (plan.serve)
		serve_and_count(qp, channel, now);
	if (plan.next != seen.server && qp->fd >= 0)
		aw_uqp_leave_to(qp, plan.next, aw_serve_is_of_channel(plan.next) ? channel : NULL);
}

void aw_uqp_on_event(uint32_t handle)
{
	aw_uqp_with(handle, serve_or_give);
}

/*
 * For a stream that is ending this is the end: a peer that does not answer our FIN loses its
 * connection. For any other it is the time to try again for memory or for a receive.
 */
static void meet_deadline(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	qp->retry_due = false;
	if (qp->fd < 0)
		return;
	if (qp->ending.begun)
		aw_uqp_end_in_time(qp);
	serve(qp);
}

void aw_uqp_on_deadline(uint32_t handle)
{
	aw_uqp_with(handle, meet_deadline);
}

/* Asks, and moves the QP. True when the QP is to be served now. */
static bool judge(struct aw_uqp *qp, enum aw_serve_cause cause, struct aw_serve_seen *seen)
	AW_REQUIRES(aw_serving_list_lock, qp->lock)
{
	struct aw_serve_plan plan = aw_serve_plan(cause, seen, 0);

	if (plan.next != seen->server) {
		aw_watched_moves(qp);
		/* The kernel may have no memory for the epoll set; then the QP stays. */
		seen->stuck = aw_uqp_listen_again(qp) != 0;
		if (seen->stuck)
			plan = aw_serve_plan(cause, seen, 0);
		else
			aw_serving_take_back(qp);
	}
	if (plan.look_again)
		aw_serving_look_again();
	return plan.serve;
}

static void find_ready(int set)
{
	int n = aw_epoll_now(set, ready, LOOKS_MAX);

	for (int i = 0; i < n; i++)
		if (ready[i].data.u64 != AW_EVENT_FD_KEY)
			due[due_count++] = (uint32_t)ready[i].data.u64;
}

/* Makes due those of the channel's QPs that have news. A tick asks each channel once, when it looks at the first of its QPs. */
static void find_due(struct aw_channel *channel) AW_REQUIRES(aw_serving_list_lock)
{
	if (channel->asked_ns == tick_ns)
		return;
	channel->asked_ns = tick_ns;
	if (aw_channel_has_set(channel))
		find_ready(channel->epfd);
	if (channel->watched > 0)
		find_ready(channel->fd);
}

/* False for a QP that has to end, or to send, without news, and for one whose socket is in no set. */
static bool waits_for_news(const struct aw_uqp *qp, const struct aw_serve_seen *seen)
{
	return qp->serving.channel && !seen->ack_late && !seen->unreachable &&
	       !aw_uqp_has_overflowed(qp);
}

/*
 * Looks at one QP, and makes due what is to be served: the QP, as one that watchers have lost (net/qp/watched.h), or those of its
 * channel that have news. True when it stays away. A QP whose lock is taken does, and the next tick looks again.
 */
static bool tick_qp(struct aw_uqp *qp) AW_REQUIRES(aw_serving_list_lock)
{
	if (aw_trylock(&qp->lock) != 0) {
		aw_serving_look_again();
		return true;
	}
	struct aw_serve_seen seen = aw_serving_in_tick(qp);
	bool serves = judge(qp, AW_SERVE_TICK, &seen);
	bool stays = aw_serving_is_away(&qp->serving);

	if (serves && stays && waits_for_news(qp, &seen))
		find_due(qp->serving.channel);
	else if (serves || (seen.server == AW_SERVER_WATCHER && !stays))
		due[due_count++] = qp->handle;

	aw_unlock(&qp->lock);
	return stays;
}

static void serve_due(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	if (qp->fd >= 0)
		serve(qp);
}

/* Returns the next time, or 0 when no QP is away. */
static uint64_t tick(uint64_t now_ns)
{
	struct aw_uqp *qp;
	uint32_t stay = 0;

	tick_ns = now_ns;
	aw_serving_lock();
	if (aw_serving_count_ticks())
		looks_due = aw_serving_count();
	for (; looks_due > 0 && stay < LOOKS_MAX && (qp = aw_serving_to_look_at()); looks_due--) {
		stay += tick_qp(qp);
		if (due_count == 0)
			continue;
		/* A QP that is served may end and leave the list. */
		aw_serving_unlock();
		for (; due_count > 0; due_count--)
			aw_uqp_with(due[due_count - 1], serve_due);
		aw_serving_lock();
	}
	bool more = aw_serving_count() > 0;

	aw_serving_unlock();
	return more ? aw_now_ns() + AW_TICK_NS : 0;
}

void aw_uqp_take_back(const struct aw_cq *cq)
{
	struct aw_uqp *qp, *next;

	aw_serving_lock();
	for (qp = aw_serving_first(); qp; qp = next) {
		next = TAILQ_NEXT(qp, serving.entry);
		if (qp->attr.send_cq != cq && qp->attr.recv_cq != cq)
			continue;
		/* A tick looks at a QP that is busy now, and finds the CQ armed. */
		if (aw_trylock(&qp->lock) != 0) {
			aw_serving_look_again();
			continue;
		}
		struct aw_serve_seen seen = aw_serving_at_arm(qp, cq);

		(void)judge(qp, AW_SERVE_ARM, &seen);
		aw_unlock(&qp->lock);
	}
	aw_serving_unlock();
}

void aw_replied_serve(void)
{
	uint32_t handle;

	while ((handle = aw_replied_take()) != AW_TABLE_NONE)
		aw_uqp_with(handle, serve_due);
}

static void set_tick(void)
{
	aw_engine_set_tick(AW_TICK_SERVE, tick);
}

static const struct aw_uqp_calls calls = {
	.on_event = aw_uqp_on_event,
	.on_deadline = aw_uqp_on_deadline,
	.on_delivered = aw_uqp_on_delivered,
};

int aw_uqp_attach_to(struct aw_uqp *qp, const struct aw_uqp_socket *to, struct aw_stream *stream)
{
	pthread_once(&registered, set_tick);
	aw_flush_begin();
	aw_lock(&qp->lock);
	int err = qp->attached || qp->core.state != AW_QP_IDLE ? EINVAL : 0;

	/* A peer that rdma_cm connects is RC. */
	if (qp->attr.uc && !qp->by_rc)
		err = EINVAL;
	if (!err && !aw_pool_warm())
		err = ENOMEM;
	if (!err)
		err = aw_uqp_take_socket(qp, to, stream, &calls);
	/* The progress thread receives what the peer has sent already. */
	if (!err)
		aw_uqp_push(qp);
	aw_uqp_unlock(qp);
	return err;
}
