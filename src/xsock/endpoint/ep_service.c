// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The thread that serves endpoints for which nobody calls: those that were closed and linger, and those that
// took bytes which the peer had no room for. Of the latter it does nothing while calls are made, which it
// sees by their count at each tick. A process that ends waits for what was taken; with _exit(2) that is lost.
#include "xsock/endpoint/ep_impl.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS 2 /* how soon bytes go on that were left behind */
#define IDLE_TICKS 100 /* it is no longer behind, but was so lately */
#define LINGER_MS 1000 /* deadlines are looked at so often */

TAILQ_HEAD(ep_list, aw_xs_ep);

static struct {
	pthread_mutex_t
		lock; /* guards what follows; behind an endpoint's lock, in which it may be tried */
	pthread_cond_t idle; /* nobody lingers */
	struct ep_list live, behind, lingering; /* lingering: not taken over yet */
	struct ep_list turned; /* those that are; the thread's own */
	uint32_t lingering_count; /* with those that are */
	uint32_t behind_count;
	bool running, prepared;
	int wake_fd;
	pthread_mutex_t birth; /* guards what follows; behind the others, and kept out of forks */
	pthread_cond_t begun; /* starting became false */
	bool starting; /* the thread is created, and has not come to run yet */
} service = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.birth = PTHREAD_MUTEX_INITIALIZER,
	.begun = PTHREAD_COND_INITIALIZER,
	.live = TAILQ_HEAD_INITIALIZER(service.live),
	.behind = TAILQ_HEAD_INITIALIZER(service.behind),
	.lingering = TAILQ_HEAD_INITIALIZER(service.lingering),
	.turned = TAILQ_HEAD_INITIALIZER(service.turned),
	.wake_fd = -1,
};

/* The thread's own. */
struct turn {
	struct pollfd *fds;
	size_t room, count;
	int timeout_ms;
};

static void wake(void)
{
	const uint64_t one = 1;
	ssize_t n = write(service.wake_fd, &one, sizeof(one));

	(void)n;
}

static void sooner(struct turn *turn, int ms)
{
	if (turn->timeout_ms < 0 || ms < turn->timeout_ms)
		turn->timeout_ms = ms;
}

/* Without memory there is no sleep on more fds than there is room for: the tick finds them. */
static void make_room(struct turn *turn, size_t need)
{
	struct pollfd *larger;

	if (need <= turn->room)
		return;
	larger = realloc(turn->fds, 2 * need * sizeof(*larger));
	if (!larger)
		return;
	turn->fds = larger;
	turn->room = 2 * need;
}

static void add_fd(struct turn *turn, int fd)
{
	make_room(turn, turn->count + 1);
	if (turn->count < turn->room)
		turn->fds[turn->count++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	else
		sooner(turn, TICK_MS);
}

/* Sleeps where ep has nothing new. Its lock is held. */
static void sleep_on(struct turn *turn, struct aw_xs_ep *ep)
{
	if (!aw_xs_ep_arm_poller(ep))
		sooner(turn, 0);
	if (ep->channel)
		add_fd(turn, ep->channel->fd);
	if (ep->events)
		add_fd(turn, ep->events->fd);
}

static void unlist(struct aw_xs_ep *ep)
{
	TAILQ_REMOVE(&service.behind, ep, behind_entry);
	ep->is_behind = false;
	service.behind_count--;
}

/* Who sleeps in a poll(2) of its own must find the events; there is one such sleeper at a time. */
static bool has_poller(const struct aw_xs_ep *ep)
{
	return ep->poller && !pthread_equal(ep->poller_id, pthread_self());
}

/*
 * Before there is a connection only its poller can be woken by what comes, and by nobody else: who takes an event of
 * set-up from under it leaves it asleep, with nothing armed.
 */
static bool is_pollers(const struct aw_xs_ep *ep)
{
	return ep->phase < AW_XS_PHASE_UP && has_poller(ep);
}

/* Somebody calls, or called lately: it is theirs. The endpoint's lock is held. */
static void watch_behind(struct turn *turn, struct aw_xs_ep *ep)
{
	bool busy = ep->calls != ep->calls_seen || ep->waiters > 0 || is_pollers(ep);

	ep->idle_ticks = aw_xs_ep_is_behind(ep) ? 0 : ep->idle_ticks + 1;
	if (!busy && ep->idle_ticks == 0) {
		aw_xs_ep_progress(ep, 0);
		if (has_poller(ep))
			aw_xs_ep_tell(ep);
		else
			sleep_on(turn, ep);
	}
	ep->calls_seen = ep->calls;
	if (ep->idle_ticks > IDLE_TICKS) {
		ep->listed = false;
		unlist(ep);
	}
}

/* The service's lock is held, so that none of them is closed. Who is in a call comes another time. */
static void turn_behind(struct turn *turn)
{
	struct aw_xs_ep *ep, *next;

	for (ep = TAILQ_FIRST(&service.behind); ep; ep = next) {
		next = TAILQ_NEXT(ep, behind_entry);
		if (pthread_mutex_trylock(&ep->lock) != 0)
			continue;
		watch_behind(turn, ep);
		pthread_mutex_unlock(&ep->lock);
	}
	if (!TAILQ_EMPTY(&service.behind))
		sooner(turn, TICK_MS);
}

static void forget(struct aw_xs_ep *ep)
{
	bool left = ep->is_left;

	if (!left)
		aw_xs_ep_free(ep);
	pthread_mutex_lock(&service.lock);
	if (--service.lingering_count == 0)
		pthread_cond_broadcast(&service.idle);
	pthread_mutex_unlock(&service.lock);
}

static void turn_lingering(struct turn *turn)
{
	struct aw_xs_ep *ep, *next;

	for (ep = TAILQ_FIRST(&service.turned); ep; ep = next) {
		next = TAILQ_NEXT(ep, entry);
		if (aw_xs_ep_linger(ep)) {
			TAILQ_REMOVE(&service.turned, ep, entry);
			forget(ep);
		} else {
			pthread_mutex_lock(&ep->lock);
			sleep_on(turn, ep);
			pthread_mutex_unlock(&ep->lock);
			sooner(turn, LINGER_MS);
		}
	}
}

static void begin(void)
{
	pthread_mutex_lock(&service.birth);
	service.starting = false;
	pthread_cond_broadcast(&service.begun);
	pthread_mutex_unlock(&service.birth);
}

static void *run(void *arg)
{
	struct turn turn = { 0 };
	uint64_t value;

	begin();
	for (;;) {
		ssize_t n = read(service.wake_fd, &value, sizeof(value));

		(void)n;
		turn.count = 0;
		turn.timeout_ms = -1;
		add_fd(&turn, service.wake_fd);
		pthread_mutex_lock(&service.lock);
		TAILQ_CONCAT(&service.turned, &service.lingering, entry);
		turn_behind(&turn);
		pthread_mutex_unlock(&service.lock);
		turn_lingering(&turn);
		poll(turn.fds, turn.count, turn.timeout_ms);
	}
	return arg;
}

static void make_idle(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&service.idle, &attr);
	pthread_condattr_destroy(&attr);
}

/* A thread on its way may hold locks of whoever makes it, which the child would then never get: see net/progress/engine.c. */
static void await_birth(void)
{
	pthread_mutex_lock(&service.birth);
	while (service.starting)
		pthread_cond_wait(&service.begun, &service.birth);
}

static void allow_births(void)
{
	pthread_mutex_unlock(&service.birth);
}

/* A child of a fork has no thread, and nothing that lingers. */
static void start_afresh(void)
{
	pthread_mutex_init(&service.lock, NULL);
	pthread_mutex_init(&service.birth, NULL);
	pthread_cond_init(&service.begun, NULL);
	make_idle();
	TAILQ_INIT(&service.live);
	TAILQ_INIT(&service.behind);
	TAILQ_INIT(&service.lingering);
	TAILQ_INIT(&service.turned);
	service.lingering_count = service.behind_count = 0;
	service.running = false;
	if (service.wake_fd >= 0)
		close(service.wake_fd);
	service.wake_fd = -1;
}

/* Other threads may still be in calls: what is left is closed, not freed. */
static void at_exit(void)
{
	struct aw_xs_ep *ep;

	for (;;) {
		pthread_mutex_lock(&service.lock);
		ep = TAILQ_FIRST(&service.live);
		if (ep)
			ep->is_left = true;
		pthread_mutex_unlock(&service.lock);
		if (!ep)
			break;
		aw_xs_service_leave(ep);
		pthread_mutex_lock(&ep->lock);
		aw_xs_stream_end(&ep->stream, AW_XS_GONE);
		pthread_mutex_unlock(&ep->lock);
		aw_xs_service_linger(ep);
	}
	aw_xs_ep_drain_all(-1);
}

static void prepare(void)
{
	if (service.prepared)
		return;
	make_idle();
	pthread_atfork(await_birth, allow_births, start_afresh);
	atexit(at_exit);
	service.prepared = true;
}

/* It takes no signals: those are the program's, but for what a fault raises. */
static int create_thread(void)
{
	sigset_t all, before;
	pthread_t thread;
	int err;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_mutex_lock(&service.birth);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	service.starting = !err;
	pthread_mutex_unlock(&service.birth);
	if (!err)
		pthread_detach(thread);
	return err;
}

static int start(void)
{
	int err;

	if (service.running)
		return 0;
	service.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (service.wake_fd < 0)
		return errno;
	err = create_thread();
	if (err) {
		close(service.wake_fd);
		service.wake_fd = -1;
		return err;
	}
	service.running = true;
	return 0;
}

void aw_xs_service_join(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&service.lock);
	prepare();
	TAILQ_INSERT_TAIL(&service.live, ep, live_entry);
	ep->is_live = true;
	pthread_mutex_unlock(&service.lock);
}

void aw_xs_service_leave(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&service.lock);
	if (ep->is_live)
		TAILQ_REMOVE(&service.live, ep, live_entry);
	ep->is_live = false;
	if (ep->is_behind)
		unlist(ep);
	pthread_mutex_unlock(&service.lock);
}

/* A thread that ticks already needs no waking. */
void aw_xs_service_behind(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&service.lock);
	if (!ep->is_left && start() == 0) {
		ep->listed = true;
		ep->is_behind = true;
		ep->calls_seen = ep->calls;
		ep->idle_ticks = 0;
		TAILQ_INSERT_TAIL(&service.behind, ep, behind_entry);
		if (service.behind_count++ == 0)
			wake();
	}
	pthread_mutex_unlock(&service.lock);
}

/* Without a thread to do it, it is done here, as far as it gets at once. */
void aw_xs_service_linger(struct aw_xs_ep *ep)
{
	bool runs;

	pthread_mutex_lock(&service.lock);
	runs = start() == 0;
	if (runs) {
		TAILQ_INSERT_TAIL(&service.lingering, ep, entry);
		service.lingering_count++;
		wake();
	}
	pthread_mutex_unlock(&service.lock);
	if (!runs && !ep->is_left)
		aw_xs_ep_free(ep);
}

int aw_xs_ep_drain_all(int64_t timeout_ns)
{
	uint64_t end_ns = aw_xs_now_ns() + (uint64_t)timeout_ns;
	struct timespec end = { .tv_sec = (time_t)(end_ns / 1000000000u),
				.tv_nsec = (long)(end_ns % 1000000000u) };
	int err = 0;

	pthread_mutex_lock(&service.lock);
	while (service.lingering_count > 0 && err == 0) {
		if (timeout_ns < 0)
			err = pthread_cond_wait(&service.idle, &service.lock);
		else
			err = pthread_cond_timedwait(&service.idle, &service.lock, &end);
	}
	pthread_mutex_unlock(&service.lock);
	return -err;
}
