// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A poller serves the QPs of its CQ: their sockets, or the memory that they share with their peers.
#include "net/qp/cq_poll.h"

#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "net/cq/feed.h"
#include "net/qp/carrier.h"
#include "net/qp/cq_qps.h"
#include "net/qp/flush.h"
#include "net/qp/serving.h"
#include "net/qp/uqp_progress.h"
#include "net/qp/uqp_sock.h"
#include "ring/lock.h"
#include "ring/table.h"

#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>

#define EPOLL_BATCH 32
#define MEMORY_LOOKS 16

/* True when a round would find nothing: all of the stream is in memory, where there is no news, and nothing waits for a poll. */
static bool is_quiet(struct aw_uqp *qp) AW_REQUIRES(qp->lock)
{
	return !qp->in->is_socket && !qp->out->is_socket && qp->core.state == AW_QP_RTS &&
	       !qp->lost && !qp->starved && !qp->deferral.ack.due && !qp->deferral.ack.waits &&
	       !aw_qp_has_waiting(&qp->core) && !aw_uqp_has_overflowed(qp) &&
	       !aw_uqp_is_inherited(qp) && !aw_carrier_has_news(qp);
}

/*
 * One round for a QP: receives, then transmits what became due. True while its socket is full; false also when another
 * thread has the lock.
 */
static bool poll_socket(struct aw_uqp *qp)
{
	if (aw_trylock(&qp->lock) != 0)
		return false;
	bool is_served = qp->fd >= 0 && !is_quiet(qp);

	if (is_served)
		aw_uqp_serve_polled(qp);
	bool full = qp->tx_blocked;

	/* Where nothing was done, no event has become due. */
	if (is_served)
		aw_uqp_unlock(qp);
	else
		aw_unlock(&qp->lock);
	return full;
}

/*
 * No event notifies of what comes through memory, so each poll looks at some of the QPs in turn.
 * True when one has more to send than there is room for.
 */
static bool serve_memory(struct aw_cq *cq) AW_REQUIRES(cq->qps_lock)
{
	uint32_t count = cq->qps_count < MEMORY_LOOKS ? cq->qps_count : MEMORY_LOOKS;
	uint32_t served = 0;
	bool full = false;

	for (uint32_t i = 0; i < count; i++) {
		cq->qps_next = (cq->qps_next + 1) % cq->qps_count;
		struct aw_uqp *qp = cq->qps[cq->qps_next];

		if (aw_trylock(&qp->lock) != 0)
			continue;
		if (qp->fd >= 0 && aw_carrier_has_news(qp)) {
			aw_uqp_serve_polled(qp);
			served++;
		}
		full |= qp->tx_blocked && !qp->out->is_socket;
		aw_uqp_unlock(qp);
	}
	if (served > 0)
		aw_activity_count(&cq->pollers.turns, served);
	return full;
}

/*
 * A thread that sleeps on the channel served the QPs as it woke, and will serve them as it sleeps
 * again. Asking the sockets in between would cost a system call each time, mostly for nothing. A
 * thread that goes on polling is served.
 */
static bool sleeps_soon(struct aw_cq *cq)
{
	uint32_t wakes;

	if (!cq->channel)
		return false;
	wakes = atomic_load_explicit(&cq->channel->waiting.turns, memory_order_relaxed);
	if (atomic_exchange_explicit(&cq->wakes_seen, wakes, memory_order_relaxed) != wakes)
		atomic_store_explicit(&cq->polls_awake, 0, memory_order_relaxed);
	if (atomic_load_explicit(&cq->polls_awake, memory_order_relaxed) >= AW_POLLS_AWAKE ||
	    wakes == 0)
		return false;
	atomic_fetch_add_explicit(&cq->polls_awake, 1, memory_order_relaxed);
	return true;
}

/* A thread has served QPs, and found: */
struct served {
	bool full; /* one has more to send than its socket takes */
	bool polled; /* nobody else serves some: they are left to pollers, or their streams go through memory */
	int taken; /* CQEs that came of it and are with the poll already */
};

static void serve_qps(struct aw_cq *cq, struct served *served) AW_REQUIRES(cq->qps_lock)
{
	bool full = false;

	if (cq->epfd >= 0 && cq->qps_count > AW_CQ_DIRECT_MAX) {
		struct epoll_event ev[EPOLL_BATCH];
		int n = aw_epoll_now(cq->epfd, ev, EPOLL_BATCH);

		for (int i = 0; i < n; i++)
			poll_socket(ev[i].data.ptr);
		/* A poll that serves many QPs counts as many turns, because such polls are less frequent. */
		if (n > 0)
			aw_activity_count(&cq->pollers.turns, (uint32_t)n);
		if (atomic_load_explicit(&cq->over_memory, memory_order_relaxed) > 0)
			full = serve_memory(cq);
	} else {
		for (uint32_t i = 0; i < cq->qps_count; i++)
			full |= poll_socket(cq->qps[i]);
	}
	served->full |= full;
	served->polled |= atomic_load_explicit(&cq->qps_away, memory_order_relaxed) > 0 ||
			  atomic_load_explicit(&cq->over_memory, memory_order_relaxed) > 0;
}

static void serve_feed(struct aw_cq *feed, struct served *served)
{
	aw_activity_count(&feed->pollers.turns, 1);
	if (aw_trylock(&feed->qps_lock) != 0)
		return;
	serve_qps(feed, served);
	aw_unlock(&feed->qps_lock);
}

/* One thread at a time serves; another that polls the same CQ meanwhile just finds it empty. */
static void serve(struct aw_cq *cq, struct aw_cq_entry *out, int max, struct served *served)
{
	struct aw_cq_taker taker = { .out = out, .max = max };

	*served = (struct served){ .polled = false };
	if (sleeps_soon(cq))
		return;
	aw_activity_count(&cq->pollers.turns, 1);
	if (aw_trylock(&cq->qps_lock) != 0)
		return;
	aw_cq_taker_begin(cq, &taker);
	serve_qps(cq, served);
	for (uint32_t i = 0; i < cq->feeds_count; i++)
		serve_feed(cq->feeds[i].cq, served);
	if (cq->socks_count > 0)
		aw_cq_serve_socks(cq);
	served->taken = aw_cq_taker_end(cq, &taker);
	aw_unlock(&cq->qps_lock);
}

/* Serves the CQ's QPs, and takes what came of that. */
static int serve_and_take(struct aw_cq *cq, struct aw_cq_entry *out, int max, struct served *served)
{
	serve(cq, out, max, served);
	int direct = served->taken;

	return direct < max ? direct + aw_cq_take(cq, out + direct, max - direct) : direct;
}

/* Relaxed: of two threads that poll the same CQ, one poll may not count. */
static void set_vain(struct aw_cq *cq, uint32_t vain)
{
	if (atomic_load_explicit(&cq->vain, memory_order_relaxed) != vain)
		atomic_store_explicit(&cq->vain, vain, memory_order_relaxed);
}

/* A QP that another thread serves at the moment needs no spinner. */
static bool spin_for(struct aw_uqp *qp)
{
	if (aw_trylock(&qp->lock) != 0)
		return false;
	if (qp->serving.server == AW_SERVER_SPINNER && qp->fd >= 0) {
		uint64_t before = qp->core.rx_pos + qp->core.sent_pos;

		aw_uqp_serve(qp);
		qp->serving.vain_turns = qp->core.rx_pos + qp->core.sent_pos == before
						 ? qp->serving.vain_turns + 1
						 : 0;
		if (qp->serving.vain_turns >= AW_SPIN_VAIN_MAX)
			aw_serving_look_again();
	}
	bool full = qp->tx_blocked;

	aw_uqp_unlock(qp);
	return full;
}

/* Serves the QPs of other CQs that were left to spinners. True when one has more to send than its socket takes. */
static bool spin(void)
{
	bool full = false;

	if (!aw_serving_spin())
		return false;
	for (int i = 0; i < AW_SPIN_QPS_MAX; i++) {
		uint32_t handle = aw_serving_spinner_qp(i);
		struct aw_uqp *qp = handle == AW_TABLE_NONE ? NULL : aw_uqp_at(handle);

		if (!qp)
			continue;
		full |= spin_for(qp);
		aw_uqp_put(qp);
	}
	return full;
}

/*
 * The poll found nothing, after it served the CQ's QPs. Where one of them has more to send than there is room for, nothing
 * happens before the peer takes bytes, and the peer may be waiting for this very CPU; so may one that has bytes to send, where
 * this thread has polled for long. A progress thread that serves the QPs takes the CPU by itself. True when the thread gave its CPU
 * away: what others did meanwhile, for milliseconds perhaps, is not seen yet.
 */
static bool poll_in_vain(struct aw_cq *cq, const struct served *served)
{
	bool full = served->full;
	uint32_t vain = atomic_load_explicit(&cq->vain, memory_order_relaxed) + 1;

	set_vain(cq, vain);
	if (vain >= AW_SPIN_POLLS)
		full |= spin();
	if (!full && (vain % AW_YIELD_POLLS != 0 || !served->polled))
		return false;
	sched_yield();
	return true;
}

/*
 * A program that finds its CQ empty may look next whether the peer has disconnected, and then destroy the QP with what is in
 * the CQ. So an empty CQ is empty behind the wait for the CPU as well.
 */
int aw_cq_poll(struct aw_cq *cq, struct aw_cq_entry *out, int max)
{
	struct served served;
	int n;

	aw_flush_polled(cq);
	n = aw_cq_take(cq, out, max);
	if (n == 0 && max > 0) {
		if (cq->overflowed)
			return -EIO;
		n = serve_and_take(cq, out, max, &served);
		if (n == 0 && poll_in_vain(cq, &served))
			n = serve_and_take(cq, out, max, &served);
	}
	if (n > 0)
		set_vain(cq, 0);
	return n;
}

/* The order is that of aw_serving_leave_to turned round: of two threads at once, one finds what the other has done. */
static void arm_feeds(struct aw_cq *cq)
{
	/* A thread of the parent may have held the lock over the fork. */
	if (cq->generation != aw_fork_generation())
		return;
	aw_lock(&cq->qps_lock);
	for (uint32_t i = 0; i < cq->feeds_count; i++) {
		struct aw_cq *feed = cq->feeds[i].cq;

		atomic_fetch_add(&feed->arms, 1);
		if (atomic_load(&feed->qps_away) > 0)
			aw_uqp_take_back(feed);
	}
	aw_unlock(&cq->qps_lock);
}

void aw_cq_arm(struct aw_cq *cq, enum aw_arm arm)
{
	aw_cq_set_arm(cq, arm);
	set_vain(cq, 0);
	/* A thread whose posts or acknowledgement may wait from here on sees that the CQ is armed. */
	aw_flush_armed(cq);
	/* A program that sleeps until the event must not find its QPs left to pollers. */
	if (atomic_load(&cq->qps_away) > 0)
		aw_uqp_take_back(cq);
	if (cq->feeds_count > 0)
		arm_feeds(cq);
	if (cq->socks_count > 0)
		aw_cq_await_socks(cq);
}
