// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The service's lists: endpoints that are not closed, those with bytes that the peer had no room for ("behind"), and closed ones
// that linger (ep_linger.c serves them). A process that ends waits for the bytes to be sent; after _exit(2) they are lost.
#define _GNU_SOURCE /* pthread_cond_clockwait */
#include "xsock/endpoint/ep_impl.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

#define EXIT_NS INT64_C(60000000000) /* how long exit(3) waits on the whole */

struct aw_xs_service aw_xs_service = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.idle = PTHREAD_COND_INITIALIZER,
	.live = TAILQ_HEAD_INITIALIZER(aw_xs_service.live),
	.behind = TAILQ_HEAD_INITIALIZER(aw_xs_service.behind),
	.closed = TAILQ_HEAD_INITIALIZER(aw_xs_service.closed),
	.lingering = TAILQ_HEAD_INITIALIZER(aw_xs_service.lingering),
};

/* In the child of a fork there is no thread, and no endpoint lingers. */
static void reset_in_child(void)
{
	pthread_mutex_init(&aw_xs_service.lock, NULL);
	pthread_cond_init(&aw_xs_service.idle, NULL);
	TAILQ_INIT(&aw_xs_service.live);
	TAILQ_INIT(&aw_xs_service.behind);
	TAILQ_INIT(&aw_xs_service.closed);
	TAILQ_INIT(&aw_xs_service.lingering);
	aw_xs_service.lingering_count = 0;
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
		pthread_mutex_lock(&aw_xs_service.lock);
		ep = TAILQ_FIRST(&aw_xs_service.live);
		if (ep)
			ep->is_abandoned = true;
		pthread_mutex_unlock(&aw_xs_service.lock);
		if (!ep)
			break;
		(void)aw_xs_service_leave(ep, false);
		pthread_mutex_lock(&ep->lock);
		aw_xs_stream_end(&ep->stream, AW_XS_GONE);
		pthread_mutex_unlock(&ep->lock);
		(void)aw_xs_service_linger(ep);
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

void aw_xs_service_join(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&aw_xs_service.lock);
	if (!aw_xs_service.prepared) {
		pthread_atfork(NULL, NULL, reset_in_child);
		atexit(close_all);
	}
	aw_xs_service.prepared = true;
	TAILQ_INSERT_TAIL(&aw_xs_service.live, ep, live_entry);
	ep->is_live = true;
	pthread_mutex_unlock(&aw_xs_service.lock);
}

void aw_xs_service_drop_behind(struct aw_xs_ep *ep)
{
	TAILQ_REMOVE(&aw_xs_service.behind, ep, served_entry);
	ep->is_behind = false;
}

bool aw_xs_service_leave(struct aw_xs_ep *ep, bool kept)
{
	bool goes_on;

	pthread_mutex_lock(&aw_xs_service.lock);
	goes_on = ep->is_abandoned || ep->is_lingering || (kept && ep->is_kept);
	if (ep->is_live)
		TAILQ_REMOVE(&aw_xs_service.live, ep, live_entry);
	if (ep->is_behind)
		aw_xs_service_drop_behind(ep);
	ep->is_live = false;
	ep->is_kept = kept;
	pthread_mutex_unlock(&aw_xs_service.lock);
	return !goes_on;
}

void aw_xs_service_behind(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&aw_xs_service.lock);
	if (ep->is_live && aw_xs_job_start(&aw_xs_service_job) == 0) {
		ep->listed = true;
		ep->is_behind = true;
		ep->calls_seen = ep->calls;
		ep->idle_ticks = 0;
		TAILQ_INSERT_TAIL(&aw_xs_service.behind, ep, served_entry);
		aw_xs_executor_wake();
	}
	pthread_mutex_unlock(&aw_xs_service.lock);
}

bool aw_xs_service_linger(struct aw_xs_ep *ep)
{
	bool runs;

	pthread_mutex_lock(&aw_xs_service.lock);
	runs = aw_xs_job_start(&aw_xs_service_job) == 0;
	ep->is_lingering = runs;
	if (runs) {
		TAILQ_INSERT_TAIL(&aw_xs_service.closed, ep, served_entry);
		aw_xs_service.lingering_count++;
		aw_xs_executor_wake();
	}
	pthread_mutex_unlock(&aw_xs_service.lock);
	return runs;
}

int aw_xs_ep_drain_all(int64_t timeout_ns)
{
	struct timespec end = aw_clock_after(CLOCK_MONOTONIC, timeout_ns);
	int err = 0;

	pthread_mutex_lock(&aw_xs_service.lock);
	while (aw_xs_service.lingering_count > 0 && err == 0)
		err = pthread_cond_clockwait(&aw_xs_service.idle, &aw_xs_service.lock,
					     CLOCK_MONOTONIC, &end);
	pthread_mutex_unlock(&aw_xs_service.lock);
	return -err;
}
