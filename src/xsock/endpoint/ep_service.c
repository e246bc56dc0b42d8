// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A job of the executor's: it serves endpoints without a caller, closed ones that linger, and those with bytes
// that the peer had no room for ("behind"). Of the latter the thread serves none while calls are
// made, which it sees by their count at each tick. A process that ends waits for the bytes to be
// sent; after _exit(2) they are lost.
#define _GNU_SOURCE /* pthread_cond_clockwait */
#include "xsock/endpoint/ep_impl.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "xsock/endpoint/executor.h"

#define TICK_MS 2 /* how soon the thread looks at bytes that were left */
#define IDLE_TICKS 100 /* ticks until an endpoint without bytes to send leaves the list */
#define EXIT_NS INT64_C(60000000000) /* how long exit(3) waits on the whole */
#define LINGER_MS 1000 /* how often the deadlines of lingering endpoints are checked */

TAILQ_HEAD(ep_list, aw_xs_ep);

static struct {
	/*
	 * Guards the fields below. A thread may take it while it holds an endpoint's lock; a thread
	 * that holds it only tries an endpoint's lock.
	 */
	pthread_mutex_t lock;
	pthread_cond_t idle; /* no endpoint lingers */
	struct ep_list live; /* endpoints that are not closed */
	struct ep_list behind;
	struct ep_list closed; /* endpoints that linger, not yet moved to `lingering` */
	struct ep_list lingering; /* used by the thread alone */
	uint32_t lingering_count; /* length of `closed` and `lingering` */
	bool prepared;
} service = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.idle = PTHREAD_COND_INITIALIZER,
	.live = TAILQ_HEAD_INITIALIZER(service.live),
	.behind = TAILQ_HEAD_INITIALIZER(service.behind),
	.closed = TAILQ_HEAD_INITIALIZER(service.closed),
	.lingering = TAILQ_HEAD_INITIALIZER(service.lingering),
};

static void serve_endpoints(struct aw_xs_wait *wait);
static struct aw_xs_job job = { .serve = serve_endpoints };

static void add_fd(struct aw_xs_wait *wait, int fd)
{
	aw_xs_wait_fd(wait, (struct pollfd){ .fd = fd, .events = POLLIN });
}

/* Arms ep and adds its fds to the poll. The caller holds ep's lock. */
static void add_endpoint(struct aw_xs_wait *wait, struct aw_xs_ep *ep)
{
	if (!aw_xs_ep_arm_poller(ep))
		aw_xs_wait_ms(wait, 0);
	if (ep->channel)
		add_fd(wait, ep->channel->fd);
	if (ep->events)
		add_fd(wait, ep->events->fd);
}

static void remove_behind(struct aw_xs_ep *ep)
{
	TAILQ_REMOVE(&service.behind, ep, served_entry);
	ep->is_behind = false;
}

/*
 * Returns whether another thread sleeps in its own poll(2) on the endpoint: it must find the
 * events. There is one at most.
 */
static bool has_poller(const struct aw_xs_ep *ep)
{
	return ep->poller && !pthread_equal(ep->poller_id, pthread_self());
}

/*
 * Returns whether only the poller may make progress: before the connection is established, taking
 * an event of set-up would leave the poller asleep without anything armed.
 */
static bool needs_poller(const struct aw_xs_ep *ep)
{
	return ep->phase < AW_XS_PHASE_UP && has_poller(ep);
}

/* Serves an endpoint that is behind, unless calls have been made since the last tick. */
static void serve_behind(struct aw_xs_wait *wait, struct aw_xs_ep *ep)
{
	bool busy = ep->calls != ep->calls_seen || ep->waiters > 0 || needs_poller(ep);

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
		remove_behind(ep);
	}
}

/*
 * Serves the list `behind`. The caller holds the service's lock, so that none is closed. An
 * endpoint whose lock is held is left for the next tick.
 */
static void serve_all_behind(struct aw_xs_wait *wait)
{
	struct aw_xs_ep *ep, *next;

	for (ep = TAILQ_FIRST(&service.behind); ep; ep = next) {
		next = TAILQ_NEXT(ep, served_entry);
		if (pthread_mutex_trylock(&ep->lock) != 0)
			continue;
		serve_behind(wait, ep);
		pthread_mutex_unlock(&ep->lock);
	}
	if (!TAILQ_EMPTY(&service.behind))
		aw_xs_wait_ms(wait, TICK_MS);
}

/*
 * Takes an endpoint out of the service, and returns whether the service frees it. The caller holds the
 * endpoint's lock: a thread that closes the endpoint meanwhile waits for it.
 */
static bool end_linger(struct aw_xs_ep *ep)
{
	bool kept, freed;

	TAILQ_REMOVE(&service.lingering, ep, served_entry);
	pthread_mutex_lock(&service.lock);
	kept = ep->is_kept;
	freed = !kept && !ep->is_abandoned;
	ep->is_lingering = false;
	pthread_mutex_unlock(&service.lock);
	if (kept && ep->phase != AW_XS_PHASE_OVER)
		aw_xs_ep_fail_qp(ep);
	return freed;
}

static void count_ended(void)
{
	pthread_mutex_lock(&service.lock);
	if (--service.lingering_count == 0)
		pthread_cond_broadcast(&service.idle);
	pthread_mutex_unlock(&service.lock);
}

/* A process that ends waits until an endpoint is freed, too. */
static void serve_lingering(struct aw_xs_wait *wait, struct aw_xs_ep *ep)
{
	bool ended, freed;

	pthread_mutex_lock(&ep->lock);
	ended = aw_xs_ep_linger(ep);
	freed = ended && end_linger(ep);
	if (!ended)
		add_endpoint(wait, ep);
	pthread_mutex_unlock(&ep->lock);
	if (freed)
		aw_xs_ep_free(ep);
	if (ended)
		count_ended();
	else
		aw_xs_wait_ms(wait, LINGER_MS);
}

static void serve_endpoints(struct aw_xs_wait *wait)
{
	struct aw_xs_ep *ep, *next;

	pthread_mutex_lock(&service.lock);
	TAILQ_CONCAT(&service.lingering, &service.closed, served_entry);
	serve_all_behind(wait);
	pthread_mutex_unlock(&service.lock);
	for (ep = TAILQ_FIRST(&service.lingering); ep; ep = next) {
		next = TAILQ_NEXT(ep, served_entry);
		serve_lingering(wait, ep);
	}
}

/* In the child of a fork there is no thread, and no endpoint lingers. */
static void reset_in_child(void)
{
	pthread_mutex_init(&service.lock, NULL);
	pthread_cond_init(&service.idle, NULL);
	TAILQ_INIT(&service.live);
	TAILQ_INIT(&service.behind);
	TAILQ_INIT(&service.closed);
	TAILQ_INIT(&service.lingering);
	service.lingering_count = 0;
}

/*
 * At exit(3): closes all endpoints and waits until their bytes are sent, or EXIT_NS have passed: a peer that sends or
 * credits on and on would hold up the process for as long as it likes. They are not freed: other threads may still be
 * in calls.
 */
static void close_all(void)
{
	struct aw_xs_ep *ep;

	for (;;) {
		pthread_mutex_lock(&service.lock);
		ep = TAILQ_FIRST(&service.live);
		if (ep)
			ep->is_abandoned = true;
		pthread_mutex_unlock(&service.lock);
		if (!ep)
			break;
		(void)aw_xs_service_leave(ep, false);
		pthread_mutex_lock(&ep->lock);
		aw_xs_stream_end(&ep->stream, AW_XS_GONE);
		pthread_mutex_unlock(&ep->lock);
		aw_xs_service_linger(ep);
	}
	(void)aw_xs_ep_drain_all(aw_xs_exit_left_ns(EXIT_NS));
}

int64_t aw_xs_exit_left_ns(int64_t limit_ns)
{
	static int64_t end_ns;
	int64_t now_ns = aw_now_ns();

	if (!end_ns)
		end_ns = now_ns + limit_ns;
	return end_ns > now_ns ? end_ns - now_ns : 0;
}

static void register_handlers(void)
{
	if (service.prepared)
		return;
	pthread_atfork(NULL, NULL, reset_in_child);
	atexit(close_all);
	service.prepared = true;
}

void aw_xs_service_join(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&service.lock);
	register_handlers();
	TAILQ_INSERT_TAIL(&service.live, ep, live_entry);
	ep->is_live = true;
	pthread_mutex_unlock(&service.lock);
}

bool aw_xs_service_leave(struct aw_xs_ep *ep, bool kept)
{
	bool goes_on;

	pthread_mutex_lock(&service.lock);
	goes_on = ep->is_abandoned || ep->is_lingering || (kept && ep->is_kept);
	if (ep->is_live)
		TAILQ_REMOVE(&service.live, ep, live_entry);
	if (ep->is_behind)
		remove_behind(ep);
	ep->is_live = false;
	ep->is_kept = kept;
	pthread_mutex_unlock(&service.lock);
	return !goes_on;
}

void aw_xs_service_behind(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&service.lock);
	if (ep->is_live && aw_xs_job_start(&job) == 0) {
		ep->listed = true;
		ep->is_behind = true;
		ep->calls_seen = ep->calls;
		ep->idle_ticks = 0;
		TAILQ_INSERT_TAIL(&service.behind, ep, served_entry);
		aw_xs_executor_wake();
	}
	pthread_mutex_unlock(&service.lock);
}

/* Without a thread the endpoint is freed at once, and with it the bytes that were not sent. */
void aw_xs_service_linger(struct aw_xs_ep *ep)
{
	bool runs;

	pthread_mutex_lock(&service.lock);
	runs = aw_xs_job_start(&job) == 0;
	ep->is_lingering = runs;
	if (runs) {
		TAILQ_INSERT_TAIL(&service.closed, ep, served_entry);
		service.lingering_count++;
		aw_xs_executor_wake();
	}
	pthread_mutex_unlock(&service.lock);
	if (!runs && !ep->is_abandoned && !ep->is_kept)
		aw_xs_ep_free(ep);
}

int aw_xs_ep_drain_all(int64_t timeout_ns)
{
	struct timespec end = aw_clock_after(CLOCK_MONOTONIC, timeout_ns);
	int err = 0;

	pthread_mutex_lock(&service.lock);
	while (service.lingering_count > 0 && err == 0)
		err = pthread_cond_clockwait(&service.idle, &service.lock, CLOCK_MONOTONIC, &end);
	pthread_mutex_unlock(&service.lock);
	return -err;
}
