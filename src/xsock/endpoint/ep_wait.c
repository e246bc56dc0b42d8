// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Readiness, and sleeping until it changes. One thread at a time sleeps on the completion channel
// for the endpoint, and other threads wait for that one. A thread of an event loop sleeps in a
// poll(2) of its own. A thread that takes an event which another thread may be waiting for raises
// that event again (aw_xs_ep_wake_sleepers).
#define _GNU_SOURCE /* ppoll, POLLRDHUP */
#include "xsock/endpoint/ep_impl.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "xsock/base/left.h"

#define LOWAT 2048u /* bytes of room that make an endpoint writable */
/* how often a thread that waits for set-up looks whether the endpoint was shut down */
#define SETUP_NS 100000000

static bool has_end(const struct aw_xs_ep *ep) AW_REQUIRES(ep->lock)
{
	return ep->stream.error || ep->stream.rx_end != AW_XS_OPEN;
}

static bool is_writable(const struct aw_xs_ep *ep) AW_REQUIRES(ep->lock)
{
	const struct aw_xs_stream *s = &ep->stream;
	size_t low = s->mem.send_len / 4 < LOWAT ? s->mem.send_len / 4 : LOWAT;

	if (ep->phase < AW_XS_PHASE_UP)
		return false;
	if (s->error || s->tx_wanted != AW_XS_OPEN || s->rx_end == AW_XS_GONE)
		return true;
	return aw_xs_stream_room(s) >= low;
}

short aw_xs_ep_bits(const struct aw_xs_ep *ep)
{
	const struct aw_xs_stream *s = &ep->stream;
	bool over = s->error || aw_xs_stream_is_done(s);
	int bits = 0;

	if (ep->phase == AW_XS_PHASE_IDLE)
		return POLLHUP | POLLOUT;
	if (aw_xs_stream_pending(s) > 0 || has_end(ep) || ep->rd_shut)
		bits |= POLLIN;
	if (is_writable(ep))
		bits |= POLLOUT;
	if (aw_xs_stream_is_urgent(s))
		bits |= POLLPRI;
	if (has_end(ep) || ep->rd_shut)
		bits |= POLLRDHUP;
	if (over)
		bits |= POLLHUP;
	if (ep->error)
		bits |= POLLERR;
	return (short)bits;
}

/* Arms the CQs, and makes progress. True: nothing has changed. */
static bool arm_cqs(struct aw_xs_ep *ep, bool sends) AW_REQUIRES(ep->lock)
{
	uint64_t before = ep->changes;

	if (ep->phase == AW_XS_PHASE_IDLE)
		return false;
	if (ep->phase == AW_XS_PHASE_UP) {
		aw_xs_ep_arm_cq(&ep->recv_cq);
		if (sends)
			aw_xs_ep_arm_cq(&ep->send_cq);
	}
	aw_xs_ep_progress(ep);
	if (sends && ep->phase == AW_XS_PHASE_UP) {
		aw_xs_ep_reap_sends(ep);
		aw_xs_ep_pump(ep, 0);
	}
	return ep->changes == before;
}

/* Returns whether a thread may wait for something that only a send completion brings. */
static bool awaits_sends(const struct aw_xs_ep *ep) AW_REQUIRES(ep->lock)
{
	return ep->caller_wrs > 0 || ep->flush_awaited || !is_writable(ep) ||
	       ep->stream.put != ep->stream.posted;
}

/* Takes an event; blocks if there is none. Returns 0 or a negative errno. */
static int take_cq_event(struct aw_xs_ep *ep, struct aw_xs_cq **which)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(ep->channel, &cq, &context) != 0)
		return -errno;
	*which = cq == ep->recv_cq.cq ? &ep->recv_cq : &ep->send_cq;
	return 0;
}

static void count_event(struct aw_xs_cq *cq)
{
	cq->armed = false;
	if (++cq->unacked < AW_XS_UNACKED_MAX)
		return;
	ibv_ack_cq_events(cq->cq, cq->unacked);
	cq->unacked = 0;
}

static void fill_fds(const struct aw_xs_ep *ep, struct pollfd fds[AW_XS_EP_FDS])
	AW_REQUIRES(ep->lock)
{
	fds[0] = (struct pollfd){ .fd = ep->channel ? ep->channel->fd : -1, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = ep->events ? ep->events->fd : -1, .events = POLLIN };
}

void aw_xs_ep_fds(struct aw_xs_ep *ep, struct pollfd fds[AW_XS_EP_FDS])
{
	pthread_mutex_lock(&ep->lock);
	fill_fds(ep, fds);
	pthread_mutex_unlock(&ep->lock);
}

/*
 * Takes the events that are there: those of earlier armings would wake the polling thread again and
 * again.
 */
static void drain_events(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock)
{
	struct pollfd fds[AW_XS_EP_FDS];
	struct aw_xs_cq *cq = NULL;

	fill_fds(ep, fds);
	if (!ep->recv_cq.armed && !ep->send_cq.armed)
		fds[0].fd = -1;
	while (poll(fds, AW_XS_EP_FDS, 0) > 0) {
		if (fds[1].revents) {
			aw_xs_ep_cm_progress(ep);
			fds[1].fd = -1;
		}
		if (!fds[0].revents)
			continue;
		if (ep->sleeping || take_cq_event(ep, &cq) != 0)
			return;
		count_event(cq);
		ep->needs_nudge = true;
	}
}

bool aw_xs_ep_arm_poller(struct aw_xs_ep *ep)
{
	uint64_t before = ep->changes;

	/* An event of rdma_cm may change more than the arming finds. */
	drain_events(ep);
	bool quiet = arm_cqs(ep, awaits_sends(ep)) && ep->changes == before;

	aw_xs_ep_wake_sleepers(ep);
	ep->poller = quiet;
	ep->poller_id = pthread_self();
	ep->poller_changes = ep->changes;
	return quiet;
}

bool aw_xs_ep_arm(struct aw_xs_ep *ep)
{
	return aw_xs_ep_arm_for(ep, 0);
}

bool aw_xs_ep_arm_for(struct aw_xs_ep *ep, short events)
{
	pthread_mutex_lock(&ep->lock);
	/* Another thread may have made progress since the caller called aw_xs_ep_ready. */
	bool quiet = aw_xs_ep_arm_poller(ep) && ep->changes == ep->ready_changes &&
		     !(aw_xs_ep_bits(ep) & events);

	aw_xs_ep_unlock(ep);
	return quiet;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u),
				  .tv_nsec = (long)(ns % 1000000000u) };
}

static void limit_sleep(const struct aw_xs_ep *ep, int64_t left_ns)
{
	if (ep->sleep_limit)
		ep->sleep_limit(left_ns);
}

/* Sleeps in ppoll. The caller does not hold the lock. */
static int sleep_unlocked(struct aw_xs_ep *ep, struct pollfd fds[AW_XS_EP_FDS], int64_t left_ns,
			  struct aw_xs_cq **cq)
{
	struct timespec limit;
	int n;

	limit = timespec_of(left_ns < 0 ? 0 : (uint64_t)left_ns);
	n = ppoll(fds, AW_XS_EP_FDS, left_ns < 0 ? NULL : &limit, NULL);
	if (n < 0)
		return -errno;
	return fds[0].revents ? take_cq_event(ep, cq) : 0;
}

/* The sleeping thread has left for good (xsock/base/left.h): another one has to sleep. */
static void leave_sleep(void *arg)
{
	struct aw_xs_ep *ep = arg;

	limit_sleep(ep, -1);
	pthread_mutex_lock(&ep->lock);
	ep->sleeping = false;
	ep->waiters--;
	pthread_cond_broadcast(&ep->changed);
	pthread_mutex_unlock(&ep->lock);
}

/*
 * Sleeps for all threads. The lock is held before and after, not during the sleep. The thread
 * sleeps in ibv_get_cq_event, which makes progress, unless there is a time limit that this function
 * does not know.
 */
static int sleep_leading(struct aw_xs_ep *ep, int64_t left_ns) AW_REQUIRES(ep->lock)
{
	struct pollfd fds[AW_XS_EP_FDS];
	bool up = ep->phase == AW_XS_PHASE_UP;
	struct _pthread_cleanup_buffer left;
	struct aw_xs_cq *cq = NULL;
	int err;

	fill_fds(ep, fds);
	if (!up && (left_ns < 0 || left_ns > SETUP_NS))
		left_ns = SETUP_NS;
	ep->sleeping = true;
	ep->sleeper = pthread_self();
	ep->sleeper_changes = ep->changes;
	pthread_mutex_unlock(&ep->lock);
	aw_left_push(&left, leave_sleep, ep);
	if (up && ep->lends && (left_ns < 0 || ep->sleep_limit)) {
		limit_sleep(ep, left_ns);
		err = take_cq_event(ep, &cq);
		limit_sleep(ep, -1);
		err = err == -ETIMEDOUT ? 0 : err;
	} else {
		err = sleep_unlocked(ep, fds, left_ns, &cq);
	}
	aw_left_pop(&left, 0);
	pthread_mutex_lock(&ep->lock);
	ep->sleeping = false;
	if (cq) {
		count_event(cq);
		ep->needs_nudge = true;
	} else if (!err && ep->events) {
		aw_xs_ep_cm_progress(ep);
	}
	return err;
}

/*
 * Sleeps once at most. A thread that is marked as the sleeper and calls again has left its sleep by
 * a signal handler, perhaps for good (siglongjmp). Returns 0 or a negative errno.
 */
static int wait_once(struct aw_xs_ep *ep, bool sends, int64_t left_ns, uint64_t end_ns)
	AW_REQUIRES(ep->lock)
{
	struct timespec end = timespec_of(end_ns);
	int err;

	if (!arm_cqs(ep, sends || awaits_sends(ep)))
		return 0;
	if (ep->sleeping && !pthread_equal(ep->sleeper, pthread_self())) {
		if (left_ns >= 0)
			pthread_cond_clockwait(&ep->changed, &ep->lock, CLOCK_MONOTONIC, &end);
		else
			pthread_cond_wait(&ep->changed, &ep->lock);
		return 0;
	}
	err = sleep_leading(ep, left_ns);
	aw_xs_ep_progress(ep);
	aw_xs_ep_wake_sleepers(ep);
	return err;
}

typedef bool condition_fn(struct aw_xs_ep *ep, short events);

static bool is_ready(struct aw_xs_ep *ep, short events) AW_REQUIRES(ep->lock)
{
	return aw_xs_ep_bits(ep) & (events | POLLERR | POLLHUP);
}

static bool may_iowrite(struct aw_xs_ep *ep, short events) AW_REQUIRES(ep->lock)
{
	const struct aw_xs_stream *s = &ep->stream;

	return is_ready(ep, events) || s->tx_wanted != AW_XS_OPEN || s->rx_end == AW_XS_GONE ||
	       aw_xs_stream_may_iowrite(s);
}

static bool is_drained(struct aw_xs_ep *ep, short events) AW_REQUIRES(ep->lock)
{
	(void)events;
	return aw_xs_ep_is_flushed(ep);
}

/* Waits until the condition holds. Returns 1, 0 at the time-out, or a negative errno. */
static int wait_for(struct aw_xs_ep *ep, condition_fn *until, short events, int64_t timeout_ns)
	AW_REQUIRES(ep->lock)
{
	bool limited = timeout_ns >= 0, sends = until != is_ready || events & POLLOUT;
	uint64_t end = limited ? (uint64_t)aw_now_ns() + (uint64_t)timeout_ns : 0;
	int64_t left = timeout_ns;
	int err = 0;

	if (ep->caller_wrs > 0)
		aw_xs_ep_progress(ep);
	while (!until(ep, events)) {
		if (err || (limited && left <= 0))
			return err;
		if (ep->interrupted)
			return -ECANCELED;
		ep->waiters++;
		err = wait_once(ep, sends, left, end);
		ep->waiters--;
		if (limited)
			left = (int64_t)end - aw_now_ns();
	}
	return 1;
}

/* Returns the readiness once the condition holds, 0 at the time-out, or a negative errno. */
static int wait_until(struct aw_xs_ep *ep, condition_fn *until, short events, int64_t timeout_ns)
{
	pthread_mutex_lock(&ep->lock);
	int result = wait_for(ep, until, events, timeout_ns);

	if (result > 0)
		result = aw_xs_ep_bits(ep);
	aw_xs_ep_unlock(ep);
	return result;
}

int aw_xs_ep_wait(struct aw_xs_ep *ep, short events, int64_t timeout_ns)
{
	return wait_until(ep, is_ready, events, timeout_ns);
}

int aw_xs_ep_wait_iowrite(struct aw_xs_ep *ep, int64_t timeout_ns)
{
	return wait_until(ep, may_iowrite, 0, timeout_ns);
}

void aw_xs_ep_attend(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	if (ep->phase == AW_XS_PHASE_UP && ep->lends && ep->sleep_limit && !ep->sleeping)
		(void)sleep_leading(ep, 0);
	aw_xs_ep_unlock(ep);
}

void aw_xs_ep_interrupt(struct aw_xs_ep *ep, bool on)
{
	pthread_mutex_lock(&ep->lock);
	ep->interrupted = on;
	if (on) {
		ep->changes++;
		ep->needs_nudge = true;
	}
	aw_xs_ep_unlock(ep);
}

int aw_xs_ep_drain(struct aw_xs_ep *ep, int64_t timeout_ns)
{
	pthread_mutex_lock(&ep->lock);
	int result = wait_for(ep, is_drained, 0, timeout_ns);

	if (result > 0)
		result = ep->stream.error;
	else if (result == 0)
		result = -ETIMEDOUT;
	aw_xs_ep_unlock(ep);
	return result;
}
