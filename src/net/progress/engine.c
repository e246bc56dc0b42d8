// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The progress thread: its start, its loop, its end, and its absence in the child of a fork. `life`
// guards all of that; it is never held while a handler or a tick runs. A
// started thread leaves only by itself, when it finds that no reference is left.
#include "net/progress/engine.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/tsan.h"
#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "net/mem/pool.h"
#include "net/progress/linger.h"
#include "ring/lock.h"
#include "ring/once.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_MAX 64 /* fetched by one epoll_wait */
#define KICK UINT64_MAX /* the key of kickfd: no watch has it */
#define MS_NS 1000000u
#define NS_PER_S 1000000000u
#define WAIT_NS_MAX (3600ull * NS_PER_S)

static struct {
	/* the thread holds it while handlers run; a fork takes it to keep them out */
	aw_mutex handling;
	aw_mutex life;
	pthread_cond_t left; /* running became false, or refs more than 0 */
	pthread_cond_t begun; /* starting became false */
	uint32_t refs;
	uint32_t leavers; /* callers of aw_engine_put that wait for the thread to leave */
	bool running;
	bool starting; /* the thread was created and does not run yet */
	bool to_join; /* the thread has left, and another one must join it */
	pthread_t thread;
	bool lacks_pwait2; /* this kernel or sandbox does, as the thread has found */
	aw_tick_fn *ticks[AW_TICKS];
	/* written with the lock; read without it by holders of a reference; -1: not running */
	_Atomic int epfd;
	_Atomic int kickfd;
} engine = {
	.handling = PTHREAD_MUTEX_INITIALIZER,
	.life = PTHREAD_MUTEX_INITIALIZER,
	.left = PTHREAD_COND_INITIALIZER,
	.begun = PTHREAD_COND_INITIALIZER,
	.epfd = -1,
	.kickfd = -1,
};

static struct aw_once once = AW_ONCE_INIT;
static _Thread_local bool self;

bool aw_engine_is_self(void)
{
	return self;
}

int aw_engine_epfd(void)
{
	return atomic_load_explicit(&engine.epfd, memory_order_relaxed);
}

void aw_engine_kick(void)
{
	int fd = atomic_load_explicit(&engine.kickfd, memory_order_relaxed);
	uint64_t one = 1;
	ssize_t written = -1;

	if (fd >= 0)
		written = aw_write_now(fd, &one, sizeof(one));
	(void)written; /* a full counter means that a kick is waiting already */
}

void aw_engine_set_tick(enum aw_tick which, aw_tick_fn *fn)
{
	aw_lock(&engine.life);
	engine.ticks[which] = fn;
	aw_unlock(&engine.life);
}

void aw_engine_kick_tick(void)
{
	aw_engine_kick();
}

/* The order of the locks: handling, linger's, life, the timers of watch.c. */

void aw_engine_fork_prepare(void) AW_ACQUIRE(engine.handling)
{
	aw_lock(&engine.handling);
}

void aw_engine_fork_done(void) AW_RELEASE(engine.handling)
{
	aw_unlock(&engine.handling);
}

/* Joins a thread that has left, and needs life no more. */
static void reap(void) AW_REQUIRES(engine.life)
{
	if (engine.to_join)
		pthread_join(engine.thread, NULL);
	engine.to_join = false;
}

static void fork_prepare(void) AW_ACQUIRE(engine.life)
{
	aw_linger_fork_prepare();
	aw_lock(&engine.life);
	/*
	 * A thread that starts or ends is inside the C library, a sanitizer or the program's allocator and
	 * may hold a lock of theirs, which the child of a fork would then never get. So a fork waits for
	 * it.
	 */
	while (engine.starting)
		pthread_cond_wait(&engine.begun, &engine.life);
	reap();
	aw_watch_fork_prepare();
}

static void fork_parent(void) AW_RELEASE(engine.life)
{
	aw_watch_fork_parent();
	aw_unlock(&engine.life);
	aw_linger_fork_parent();
}

static void close_fds(void) AW_REQUIRES(engine.life)
{
	aw_close_now(atomic_exchange_explicit(&engine.epfd, -1, memory_order_relaxed));
	aw_close_now(atomic_exchange_explicit(&engine.kickfd, -1, memory_order_relaxed));
}

static void fork_child(void) AW_RELEASE(engine.life)
{
	if (engine.running)
		close_fds();
	engine.running = false;
	engine.to_join = false;
	engine.leavers = 0;
	pthread_cond_init(&engine.left, NULL);
	pthread_cond_init(&engine.begun, NULL);
	self = false;
	aw_watch_fork_child();
	aw_unlock(&engine.life);
	aw_linger_fork_child();
}

static const struct aw_fork_handlers fork_handlers = {
	.prepare = fork_prepare,
	.parent = fork_parent,
	.child = fork_child,
};

/* No watch's handler runs from before a fork takes its first lock until it has given back its last. */
static const struct aw_fork_handlers handling_handlers = {
	.prepare = aw_engine_fork_prepare,
	.parent = aw_engine_fork_done,
	.child = aw_engine_fork_done,
};

static int init_once(void)
{
	int err = aw_watch_init();

	if (err)
		return err;
	aw_fork_register(AW_FORK_HANDLING, &handling_handlers);
	aw_fork_register(AW_FORK_ENGINE, &fork_handlers);
	return 0;
}

/* Ends the thread if no reference is left. False: there is one, and the thread goes on. */
static bool leave(void)
{
	bool unwanted;

	aw_lock(&engine.life);
	unwanted = engine.refs == 0;
	aw_unlock(&engine.life);
	if (!unwanted)
		return false;
	aw_lock(&engine.handling);
	aw_linger_flush();
	aw_pool_flush();
	aw_unlock(&engine.handling);
	aw_lock(&engine.life);
	unwanted = engine.refs == 0;
	if (unwanted) {
		close_fds();
		engine.running = false;
		if (engine.leavers > 0)
			engine.to_join = true;
		else
			pthread_detach(pthread_self());
		pthread_cond_broadcast(&engine.left);
	}
	aw_unlock(&engine.life);
	return unwanted;
}

/* Runs the ticks that are due, or all, and writes when each runs again. */
static void run_ticks(uint64_t next[AW_TICKS], bool all)
{
	uint64_t now = aw_now_ns();

	for (int i = 0; i < AW_TICKS; i++) {
		if (!all && (!next[i] || now < next[i]))
			continue;
		aw_lock(&engine.life);
		aw_tick_fn *tick = engine.ticks[i];

		aw_unlock(&engine.life);
		next[i] = tick ? tick(now) : 0;
	}
}

/*
 * An event comes behind all that came before epoll_ctl(2). ThreadSanitizer knows that of epoll_wait(2) alone, which finds the events
 * once more: none of the engine's is told only once.
 */
static void tell_tsan(int epfd)
{
	struct epoll_event again;

	if (aw_tsan_sees_calls())
		(void)epoll_wait(epfd, &again, 1, 0);
}

/*
 * Waits until an event or that time (0: for ever). Before Linux 5.11, and in sandboxes that know no
 * newer system calls, the time is rounded up to milliseconds.
 */
static int await(struct epoll_event *events, uint64_t until_ns)
{
	uint64_t now = until_ns ? aw_now_ns() : 0;
	uint64_t ns = until_ns > now ? until_ns - now : 0;
	struct timespec ts = { (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) };
	int epfd = aw_engine_epfd();

	if (!engine.lacks_pwait2) {
		int count = epoll_pwait2(epfd, events, EVENTS_MAX, until_ns ? &ts : NULL, NULL);

		engine.lacks_pwait2 = count < 0 && (errno == ENOSYS || errno == EPERM);
		if (!engine.lacks_pwait2) {
			if (count > 0)
				tell_tsan(epfd);
			return count;
		}
	}
	if (ns > WAIT_NS_MAX)
		ns = WAIT_NS_MAX;
	return epoll_wait(epfd, events, EVENTS_MAX,
			  until_ns ? (int)((ns + MS_NS - 1) / MS_NS) : -1);
}

static void dispatch(const struct epoll_event *events, int count, bool last)
{
	for (int i = 0; i < count; i++)
		if (events[i].data.u64 != KICK && aw_watch_is_last(events[i].data.u64) == last)
			aw_watch_dispatch(events[i].data.u64, events[i].events);
}

/* Fetches events once and runs their handlers. True when there was a kick. */
static bool serve(uint64_t until_ns)
{
	struct epoll_event events[EVENTS_MAX];
	int count = await(events, until_ns);
	bool kicked = false;
	uint64_t kicks;

	aw_lock(&engine.handling);
	for (int i = 0; i < count; i++)
		if (events[i].data.u64 == KICK)
			kicked = read(atomic_load_explicit(&engine.kickfd, memory_order_relaxed),
				      &kicks, sizeof(kicks)) > 0;
	dispatch(events, count, false);
	dispatch(events, count, true);
	aw_unlock(&engine.handling);
	return kicked;
}

static void *run(void *unused)
{
	uint64_t next_ticks[AW_TICKS], next = 0;
	bool kicked = true; /* a tick or deadline set while no thread ran kicked nobody */

	(void)unused;
	self = true;
	engine.lacks_pwait2 = false;
	/* pthread_setname_np would take a kilobyte of the starter's stack, which may be small. */
	prctl(PR_SET_NAME, "anywarp");
	aw_lock(&engine.life);
	engine.starting = false;
	pthread_cond_broadcast(&engine.begun);
	aw_unlock(&engine.life);
	aw_thread_shorten_slice();
	prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		aw_lock(&engine.handling);
		run_ticks(next_ticks, kicked);
		aw_watch_run_after();
		/* Last, because all of the above may set deadlines, and does so without a kick. */
		next = aw_watch_run_timers();
		aw_unlock(&engine.handling);
		if (kicked && leave())
			return NULL;
		for (int i = 0; i < AW_TICKS; i++)
			if (next_ticks[i] && (!next || next_ticks[i] < next))
				next = next_ticks[i];
		kicked = serve(next);
	}
}

static int open_fds(void) AW_REQUIRES(engine.life)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = KICK };
	int epfd = epoll_create1(EPOLL_CLOEXEC);
	int kickfd, err;

	if (epfd < 0)
		return errno;
	kickfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (kickfd < 0 || epoll_ctl(epfd, EPOLL_CTL_ADD, kickfd, &ev) != 0) {
		err = errno;
		if (kickfd >= 0)
			aw_close_now(kickfd);
		aw_close_now(epfd);
		return err;
	}
	atomic_store_explicit(&engine.epfd, epfd, memory_order_relaxed);
	atomic_store_explicit(&engine.kickfd, kickfd, memory_order_relaxed);
	return 0;
}

/* The caller holds a reference. */
static int start(void) AW_REQUIRES(engine.life)
{
	int err;

	if (engine.running)
		return 0;
	reap();
	err = open_fds();
	if (err)
		return err;
	err = aw_thread_create(&engine.thread, run, NULL);
	if (err) {
		close_fds();
		return err;
	}
	engine.running = engine.starting = true;
	return 0;
}

int aw_engine_start(void)
{
	int err = 0;

	if (aw_engine_epfd() >= 0)
		return aw_engine_epfd();
	aw_lock(&engine.life);
	err = engine.refs > 0 ? start() : EINVAL;
	aw_unlock(&engine.life);
	return err ? -err : aw_engine_epfd();
}

int aw_engine_get(void)
{
	int err = aw_once_run(&once, init_once);

	if (err)
		return err;
	aw_lock(&engine.life);
	err = start();
	/* Threads in await_end wait no longer: this thread keeps the engine. */
	if (!err && engine.refs++ == 0)
		pthread_cond_broadcast(&engine.left);
	aw_unlock(&engine.life);
	if (err)
		aw_log(AW_LOG_ERROR, "cannot start the progress thread: %s", strerror(err));
	return err;
}

void aw_engine_put(void)
{
	aw_lock(&engine.life);
	assert(engine.refs > 0);
	engine.refs--;
	if (engine.refs == 0 && engine.running) {
		aw_engine_kick();
		if (!self) {
			/* Until the thread has left or is needed again. */
			engine.leavers++;
			while (engine.running && engine.refs == 0)
				pthread_cond_wait(&engine.left, &engine.life);
			engine.leavers--;
			reap();
		}
	}
	aw_unlock(&engine.life);
}
