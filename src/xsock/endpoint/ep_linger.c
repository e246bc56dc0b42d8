// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Endpoints without a caller, which a job of the executor's serves: those that are behind, of which the thread serves none while
// calls are made, which it sees by their count at each tick; and closed ones. A closed endpoint that has bytes or the stream's end to
// send lingers: the thread makes progress on it until both are sent. Bytes that the peer sends meanwhile are received and dropped,
// since a peer that cannot send may not receive either. An endpoint that gets nowhere for a minute
// (startup_timeout_ms during start-up) is given up.
#include "xsock/endpoint/ep_impl.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "xsock/endpoint/executor.h"

#define TICK_MS 2 /* how soon the thread looks at bytes that were left */
#define IDLE_TICKS 100 /* ticks until an endpoint without bytes to send leaves the list */
#define LINGER_MS 1000 /* how often the deadlines of lingering endpoints are checked */
#define STALL_NS 60000000000u /* without any progress */
#define DISCONNECT_NS 3000000000u /* how long the peer has to end its direction after ours */

/* Resets the connection. */
static void fail_qp(struct aw_xs_ep *ep)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (ep->id && ep->id->qp)
		ibv_modify_qp(ep->id->qp, &attr, IBV_QP_STATE);
}

void aw_xs_ep_reset(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	if (ep->phase != AW_XS_PHASE_OVER)
		fail_qp(ep);
	pthread_mutex_unlock(&ep->lock);
}

/* Returns whether there is nothing to send, or no peer to send it to. */
static bool has_nothing_to_send(const struct aw_xs_ep *ep) AW_REQUIRES(ep->lock)
{
	const struct aw_xs_stream *s = &ep->stream;

	return ep->phase == AW_XS_PHASE_IDLE || ep->phase == AW_XS_PHASE_OVER ||
	       (ep->phase < AW_XS_PHASE_REQUEST && s->put == 0);
}

/* Makes progress on an endpoint that lingers. Returns true once it may be freed. */
static bool linger_once(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock)
{
	uint64_t now = (uint64_t)aw_now_ns(), stall_max_ns = STALL_NS, at;

	aw_xs_ep_cm_progress(ep);
	aw_xs_ep_progress(ep);
	aw_xs_stream_discard(&ep->stream);
	aw_xs_ep_pump(ep, 0);
	at = ep->stream.freed + ep->stream.seq_limit + ep->stream.came + ep->phase;
	if (!ep->disconnecting && (at != ep->stalled_at || ep->stalled_since_ns == 0)) {
		ep->stalled_at = at;
		ep->stalled_since_ns = now;
	}

	/* Disconnects once the bytes and the stream's end are sent. */
	if (!ep->disconnecting && aw_xs_ep_is_flushed(ep)) {
		ep->disconnecting = true;
		ep->stalled_since_ns = now;
		ep->stalled_at = UINT64_MAX;
		if (!ep->id || rdma_disconnect(ep->id) != 0)
			aw_xs_ep_end(ep, 0);
	}

	if (ep->disconnecting)
		stall_max_ns = DISCONNECT_NS;
	else if (ep->phase < AW_XS_PHASE_UP && ep->options.startup_timeout_ms)
		stall_max_ns = ep->options.startup_timeout_ms * UINT64_C(1000000);
	return has_nothing_to_send(ep) || now - ep->stalled_since_ns > stall_max_ns;
}

/* Arms ep and adds its fds to the poll. */
static void add_endpoint(struct aw_xs_wait *wait, struct aw_xs_ep *ep) AW_REQUIRES(ep->lock)
{
	if (!aw_xs_ep_arm_poller(ep))
		aw_xs_wait_ms(wait, 0);
	if (ep->channel)
		aw_xs_wait_fd(wait, (struct pollfd){ .fd = ep->channel->fd, .events = POLLIN });
	if (ep->events)
		aw_xs_wait_fd(wait, (struct pollfd){ .fd = ep->events->fd, .events = POLLIN });
}

/*
 * Returns whether another thread sleeps in its own poll(2) on the endpoint: it must find the
 * events. There is one at most.
 */
static bool has_poller(const struct aw_xs_ep *ep) AW_REQUIRES(ep->lock)
{
	return ep->poller && !pthread_equal(ep->poller_id, pthread_self());
}

/* Serves an endpoint that is behind, unless calls have been made since the last tick. */
static void serve_behind(struct aw_xs_wait *wait, struct aw_xs_ep *ep)
	AW_REQUIRES(ep->lock, aw_xs_service.lock)
{
	/*
	 * Before the connection is established, only the poller may make progress: to take an event of set-up would leave it asleep
	 * without anything armed.
	 */
	bool busy = ep->calls != ep->calls_seen || ep->waiters > 0 ||
		    (ep->phase < AW_XS_PHASE_UP && has_poller(ep));

	ep->idle_ticks = aw_xs_ep_is_behind(ep) ? 0 : ep->idle_ticks + 1;
	if (!busy && ep->idle_ticks == 0) {
		aw_xs_ep_progress(ep);
		if (has_poller(ep))
			aw_xs_ep_wake_sleepers(ep);
		else
			add_endpoint(wait, ep);
	}
	ep->calls_seen = ep->calls;
	if (ep->idle_ticks > IDLE_TICKS) {
		ep->listed = false;
		aw_xs_service_drop_behind(ep);
	}
}

static void serve_lingering(struct aw_xs_wait *wait, struct aw_xs_ep *ep)
{
	bool kept, freed;

	pthread_mutex_lock(&ep->lock);
	if (!linger_once(ep)) {
		add_endpoint(wait, ep);
		pthread_mutex_unlock(&ep->lock);
		aw_xs_wait_ms(wait, LINGER_MS);
		return;
	}

	/* The endpoint leaves the service. A thread that closes it meanwhile waits for its lock. */
	TAILQ_REMOVE(&aw_xs_service.lingering, ep, served_entry);
	pthread_mutex_lock(&aw_xs_service.lock);
	kept = ep->is_kept;
	freed = !kept && !ep->is_abandoned;
	ep->is_lingering = false;
	pthread_mutex_unlock(&aw_xs_service.lock);
	if (kept && ep->phase != AW_XS_PHASE_OVER)
		fail_qp(ep);
	pthread_mutex_unlock(&ep->lock);
	if (freed)
		aw_xs_ep_free(ep);

	/* A process that ends waits until an endpoint is freed, too. */
	pthread_mutex_lock(&aw_xs_service.lock);
	if (--aw_xs_service.lingering_count == 0)
		pthread_cond_broadcast(&aw_xs_service.idle);
	pthread_mutex_unlock(&aw_xs_service.lock);
}

static void serve_endpoints(struct aw_xs_wait *wait)
{
	struct aw_xs_ep *ep, *next;

	/*
	 * With the service's lock none of the list `behind` is closed meanwhile. An endpoint whose lock is held is left for the next
	 * tick.
	 */
	pthread_mutex_lock(&aw_xs_service.lock);
	TAILQ_CONCAT(&aw_xs_service.lingering, &aw_xs_service.closed, served_entry);
	for (ep = TAILQ_FIRST(&aw_xs_service.behind); ep; ep = next) {
		next = TAILQ_NEXT(ep, served_entry);
		if (pthread_mutex_trylock(&ep->lock) != 0)
			continue;
		serve_behind(wait, ep);
		pthread_mutex_unlock(&ep->lock);
	}
	if (!TAILQ_EMPTY(&aw_xs_service.behind))
		aw_xs_wait_ms(wait, TICK_MS);
	pthread_mutex_unlock(&aw_xs_service.lock);

	for (ep = TAILQ_FIRST(&aw_xs_service.lingering); ep; ep = next) {
		next = TAILQ_NEXT(ep, served_entry);
		serve_lingering(wait, ep);
	}
}

struct aw_xs_job aw_xs_service_job = { .serve = serve_endpoints };

/* Receives no more, and sends the bytes that were taken and then the stream's end. Returns whether there are none to send. */
static bool end_stream(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	aw_xs_ep_progress(ep);
	aw_xs_stream_end(&ep->stream, AW_XS_GONE);
	aw_xs_stream_discard(&ep->stream);
	ep->flush_awaited = true;
	aw_xs_ep_pump(ep, 0);
	bool done = has_nothing_to_send(ep);

	pthread_mutex_unlock(&ep->lock);
	return done;
}

void aw_xs_ep_close(struct aw_xs_ep *ep, bool abort)
{
	/* In a child of a fork the connection is the parent's. */
	if (ep->pid != getpid()) {
		munmap(ep->memory, ep->memory_len);
		free(ep);
		return;
	}
	if (!aw_xs_service_leave(ep, false))
		return;
	if (abort)
		fail_qp(ep);
	/* Without a thread the bytes that were not sent are lost. */
	if (abort || end_stream(ep) || !aw_xs_service_linger(ep))
		aw_xs_ep_free(ep);
}

void aw_xs_ep_hang_up(struct aw_xs_ep *ep)
{
	if (ep->pid != getpid())
		return;
	if (!aw_xs_service_leave(ep, true))
		return;
	(void)end_stream(ep);
	(void)aw_xs_service_linger(ep);
}
