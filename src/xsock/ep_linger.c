// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Closed endpoints that still have octets to send, or an end to tell, and the one thread that serves them.
// It takes from each what the peer sends, since a peer that cannot send may not receive either. An endpoint
// that gets nowhere for a minute is given up. A process that ends waits for them; so does not _exit(2).
#include "xsock/ep_impl.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define STALL_NS 60000000000u /* without a single octet on its way */
#define FAREWELL_NS 3000000000u /* for the peer's end, once ours is told */
#define TICK_MS 1000

TAILQ_HEAD(ep_list, aw_xs_ep);

static struct {
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t idle; /* nobody lingers */
	struct ep_list list; /* of the thread's own while it serves */
	uint32_t count;
	bool running, prepared;
	int wake_fd;
} reaper = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.list = TAILQ_HEAD_INITIALIZER(reaper.list),
	.wake_fd = -1,
};

static void note_progress(struct aw_xs_ep *ep, uint64_t now)
{
	uint64_t at = ep->stream.freed + ep->stream.seq_limit + ep->stream.came + ep->phase;

	if (at != ep->stalled_at || ep->stalled_since_ns == 0) {
		ep->stalled_at = at;
		ep->stalled_since_ns = now;
	}
}

/* What was taken is sent and the end told: now the connection's end, unless it is over. */
static void say_farewell(struct aw_xs_ep *ep, uint64_t now)
{
	if (ep->disconnecting || !aw_xs_ep_is_flushed(ep))
		return;
	ep->disconnecting = true;
	ep->stalled_since_ns = now;
	ep->stalled_at = UINT64_MAX;
	if (!ep->id || rdma_disconnect(ep->id) != 0)
		aw_xs_ep_over(ep, 0);
}

/* True once the endpoint may be freed. */
static bool serve(struct aw_xs_ep *ep)
{
	uint64_t now = aw_xs_now_ns();
	bool over;

	pthread_mutex_lock(&ep->lock);
	aw_xs_ep_cm_progress(ep);
	aw_xs_ep_progress(ep, 0);
	aw_xs_stream_discard(&ep->stream);
	aw_xs_ep_pump(ep, 0);
	if (!ep->disconnecting)
		note_progress(ep, now);
	say_farewell(ep, now);
	over = ep->phase == AW_XS_PHASE_OVER ||
	       now - ep->stalled_since_ns > (ep->disconnecting ? FAREWELL_NS : STALL_NS);
	pthread_mutex_unlock(&ep->lock);
	return over;
}

static void serve_all(struct ep_list *mine, uint32_t *count)
{
	struct aw_xs_ep *ep, *next;

	for (ep = TAILQ_FIRST(mine); ep; ep = next) {
		next = TAILQ_NEXT(ep, entry);
		if (!serve(ep))
			continue;
		TAILQ_REMOVE(mine, ep, entry);
		aw_xs_ep_free(ep);
		(*count)--;
		pthread_mutex_lock(&reaper.lock);
		if (--reaper.count == 0)
			pthread_cond_broadcast(&reaper.idle);
		pthread_mutex_unlock(&reaper.lock);
	}
}

/* Room for every endpoint's fds and the wake-up's; what there was on failure. */
static struct pollfd *make_room(struct pollfd *fds, size_t *room, size_t need)
{
	struct pollfd *larger;

	if (need <= *room)
		return fds;
	larger = realloc(fds, 2 * need * sizeof(*fds));
	if (!larger)
		return fds;
	*room = 2 * need;
	return larger;
}

/* Sleeps unless some endpoint has news. */
static void sleep_on(const struct ep_list *mine, struct pollfd *fds, size_t room)
{
	struct aw_xs_ep *ep;
	bool quiet = true;
	size_t n = 0;

	if (room > 0)
		fds[n++] = (struct pollfd){ .fd = reaper.wake_fd, .events = POLLIN };
	TAILQ_FOREACH(ep, mine, entry)
	{
		if (n + AW_XS_EP_FDS > room)
			break;
		quiet = aw_xs_ep_arm(ep) && quiet;
		aw_xs_ep_fds(ep, fds + n);
		n += AW_XS_EP_FDS;
	}
	poll(fds, n, quiet ? (TAILQ_EMPTY(mine) ? -1 : TICK_MS) : 0);
}

static void take_new(struct ep_list *mine, uint32_t *count)
{
	uint64_t value;
	ssize_t n = read(reaper.wake_fd, &value, sizeof(value));

	(void)n;
	pthread_mutex_lock(&reaper.lock);
	TAILQ_CONCAT(mine, &reaper.list, entry);
	*count = reaper.count;
	pthread_mutex_unlock(&reaper.lock);
}

static void *run(void *arg)
{
	struct ep_list mine = TAILQ_HEAD_INITIALIZER(mine);
	struct pollfd *fds = NULL;
	size_t room = 0;
	uint32_t count = 0;

	for (;;) {
		take_new(&mine, &count);
		serve_all(&mine, &count);
		fds = make_room(fds, &room, 1 + (size_t)count * AW_XS_EP_FDS);
		sleep_on(&mine, fds, room);
	}
	return arg;
}

/* A child of a fork has no thread, and nothing that lingers. */
static void start_afresh(void)
{
	pthread_mutex_init(&reaper.lock, NULL);
	pthread_cond_init(&reaper.idle, NULL);
	TAILQ_INIT(&reaper.list);
	reaper.count = 0;
	reaper.running = false;
	if (reaper.wake_fd >= 0)
		close(reaper.wake_fd);
	reaper.wake_fd = -1;
}

static void at_exit(void)
{
	aw_xs_ep_drain_all(-1);
}

static void prepare(void)
{
	pthread_condattr_t attr;

	if (reaper.prepared)
		return;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&reaper.idle, &attr);
	pthread_condattr_destroy(&attr);
	pthread_atfork(NULL, NULL, start_afresh);
	atexit(at_exit);
	reaper.prepared = true;
}

/* It takes no signals: those are the program's. */
static int start(void)
{
	sigset_t all, before;
	pthread_t thread;
	int err;

	prepare();
	reaper.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (reaper.wake_fd < 0)
		return errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (err) {
		close(reaper.wake_fd);
		reaper.wake_fd = -1;
		return err;
	}
	pthread_detach(thread);
	reaper.running = true;
	return 0;
}

/* Without a thread to do it, it is done here, as far as it gets at once. */
void aw_xs_linger(struct aw_xs_ep *ep)
{
	const uint64_t one = 1;
	bool runs;

	pthread_mutex_lock(&reaper.lock);
	runs = reaper.running || start() == 0;
	if (runs) {
		TAILQ_INSERT_TAIL(&reaper.list, ep, entry);
		reaper.count++;
		ssize_t n = write(reaper.wake_fd, &one, sizeof(one));

		(void)n;
	}
	pthread_mutex_unlock(&reaper.lock);
	if (!runs)
		aw_xs_ep_free(ep);
}

int aw_xs_ep_drain_all(int64_t timeout_ns)
{
	uint64_t end_ns = aw_xs_now_ns() + (uint64_t)timeout_ns;
	struct timespec end = { .tv_sec = (time_t)(end_ns / 1000000000u),
				.tv_nsec = (long)(end_ns % 1000000000u) };
	int err = 0;

	pthread_mutex_lock(&reaper.lock);
	while (reaper.count > 0 && err == 0) {
		if (timeout_ns < 0)
			err = pthread_cond_wait(&reaper.idle, &reaper.lock);
		else
			err = pthread_cond_timedwait(&reaper.idle, &reaper.lock, &end);
	}
	pthread_mutex_unlock(&reaper.lock);
	return -err;
}

/* Nothing to send and nobody to tell. */
static bool is_pointless(const struct aw_xs_ep *ep)
{
	const struct aw_xs_stream *s = &ep->stream;

	return ep->phase == AW_XS_PHASE_IDLE || ep->phase == AW_XS_PHASE_OVER ||
	       (ep->phase < AW_XS_PHASE_UP && s->put == 0);
}

/* The parent's connection: only our copy of the memory is ours. */
static void forget(struct aw_xs_ep *ep)
{
	munmap(ep->memory, ep->memory_len);
	free(ep);
}

static void reset(struct aw_xs_ep *ep)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (ep->id && ep->id->qp)
		ibv_modify_qp(ep->id->qp, &attr, IBV_QP_STATE);
	aw_xs_ep_free(ep);
}

void aw_xs_ep_close(struct aw_xs_ep *ep, bool abort)
{
	if (ep->pid != getpid()) {
		forget(ep);
		return;
	}
	if (abort) {
		reset(ep);
		return;
	}
	pthread_mutex_lock(&ep->lock);
	aw_xs_ep_progress(ep, 0);
	aw_xs_stream_end(&ep->stream, AW_XS_GONE);
	aw_xs_stream_discard(&ep->stream);
	aw_xs_ep_pump(ep, 0);
	bool pointless = is_pointless(ep);

	pthread_mutex_unlock(&ep->lock);
	if (pointless)
		aw_xs_ep_free(ep);
	else
		aw_xs_linger(ep);
}
