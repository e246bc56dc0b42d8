// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Watches: the table that keeps them while a handler runs, and the lists of deadlines. An epoll
// event carries handle and serial, so an event that was fetched before its watch ended finds
// nothing.
#include "net/progress/watch.h"

#include "base/array.h"
#include "base/clock.h"
#include "net/progress/engine.h"
#include "ring/lock.h"
#include "ring/table.h"

#include <assert.h>
#include <errno.h>
#include <sys/epoll.h>

#define WATCH_MAX (1u << 18)
#define US_NS 1000u
#define MS_US 1000u
#define LAST UINT32_C(0x80000000) /* bit of a serial: the watch was made by aw_watch_add_last */

static struct aw_table table;
static struct aw_latch timer_lock;
/* Each list holds durations of one power of two in the order of their deadlines. */
TAILQ_HEAD(timer_list, aw_watch);
static struct timer_list timers[64] AW_GUARDED_BY(timer_lock);
static uint64_t timers_used AW_GUARDED_BY(timer_lock); /* bits of the lists that are not empty */
/* only for the progress thread */
static STAILQ_HEAD(, aw_after) afters = STAILQ_HEAD_INITIALIZER(afters);
static uint32_t next_serial AW_GUARDED_BY(timer_lock);
/*
 * The time when the progress thread next looks at the deadlines by itself; 0: never.
 * It stays when the deadline that it was set for is cancelled: connection set-ups
 * follow each other, each with a deadline that never comes, and only the first one then has to wake
 * the thread.
 */
static uint64_t wakes_ns AW_GUARDED_BY(timer_lock);

/* Unchecked: no other thread has the lists yet. */
int aw_watch_init(void) AW_UNCHECKED
{
	aw_latch_init(&timer_lock);
	for (size_t i = 0; i < ARRAY_LEN(timers); i++)
		TAILQ_INIT(&timers[i]);
	return aw_table_init(&table, WATCH_MAX);
}

static void release(void *object)
{
	struct aw_watch *w = object;

	if (w->release)
		w->release(w);
}

uint64_t aw_watch_key(const struct aw_watch *w)
{
	return (uint64_t)w->serial << 32 | w->handle;
}

static int control_fd(int op, int fd, const struct aw_watch *w, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.u64 = aw_watch_key(w) };

	return epoll_ctl(aw_engine_epfd(), op, fd, &ev) == 0 ? 0 : errno;
}

static int control(int op, const struct aw_watch *w, uint32_t events)
{
	return control_fd(op, w->fd, w, events);
}

static void init(struct aw_watch *w, int fd, uint32_t events, aw_watch_fn *fn,
		 void (*release_fn)(struct aw_watch *w))
{
	*w = (struct aw_watch){
		.fd = fd,
		.fn = fn,
		.release = release_fn,
		.events = fd >= 0 ? events : 0,
	};
}

/* op: EPOLL_CTL_ADD, or EPOLL_CTL_MOD for an fd that is in the epoll set. */
static int add(struct aw_watch *w, uint32_t flag, int op)
{
	uint32_t events = atomic_load_explicit(&w->events, memory_order_relaxed);
	int epfd = aw_engine_start();
	int err;

	if (epfd < 0)
		return -epfd;
	w->handle = aw_table_reserve(&table);
	if (w->handle == AW_TABLE_NONE)
		return ENOMEM;
	aw_lock(&timer_lock);
	w->serial = (next_serial++ & ~LAST) | flag;
	aw_unlock(&timer_lock);
	/*
	 * Published before epoll_ctl, because an event may come at once. If the progress thread
	 * took this thread's CPU and found no watch, the level-triggered event would come again until its
	 * time slice ends.
	 */
	aw_table_publish(&table, w->handle, w, release);
	err = events ? control(op, w, events) : 0;
	if (err) {
		aw_table_withdraw_wait(&table, w->handle);
		aw_table_cancel(&table, w->handle);
	}
	return err;
}

int aw_watch_add(struct aw_watch *w, int fd, uint32_t events, aw_watch_fn *fn,
		 void (*release_fn)(struct aw_watch *w))
{
	init(w, fd, events, fn, release_fn);
	return add(w, 0, EPOLL_CTL_ADD);
}

int aw_watch_add_passed(struct aw_watch *w, int fd, uint32_t events, aw_watch_fn *fn,
			void (*release_fn)(struct aw_watch *w))
{
	init(w, fd, events, fn, release_fn);
	return add(w, 0, EPOLL_CTL_MOD);
}

int aw_watch_add_last(struct aw_watch *w, int fd, uint32_t events, aw_watch_fn *fn,
		      void (*release_fn)(struct aw_watch *w))
{
	init(w, fd, events, fn, release_fn);
	return add(w, LAST, EPOLL_CTL_ADD);
}

bool aw_watch_is_last(uint64_t key)
{
	return key >> 32 & LAST;
}

int aw_watch_events(struct aw_watch *w, uint32_t events)
{
	uint32_t now = atomic_load_explicit(&w->events, memory_order_relaxed);
	int err = 0;

	if (w->fd < 0 || events == now)
		return 0;
	if (events == 0)
		control(EPOLL_CTL_DEL, w, 0);
	else
		err = control(now ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, w, events);
	if (!err)
		atomic_store_explicit(&w->events, events, memory_order_relaxed);
	return err;
}

void aw_watch_drop_fd(struct aw_watch *w)
{
	aw_watch_events(w, 0);
	w->fd = -1;
}

bool aw_watch_pass_fd(struct aw_watch *w)
{
	bool is_there = atomic_exchange_explicit(&w->events, 0, memory_order_relaxed) != 0;

	w->fd = -1;
	return is_there;
}

void aw_watch_take_passed(struct aw_watch *w, uint32_t events)
{
	atomic_store_explicit(&w->events, events, memory_order_relaxed);
	(void)control(EPOLL_CTL_MOD, w, events);
}

void aw_watch_drop_passed(int fd)
{
	struct epoll_event unused = { 0 };

	epoll_ctl(aw_engine_epfd(), EPOLL_CTL_DEL, fd, &unused);
}

/* The watch whose deadline is next, or NULL. */
static struct aw_watch *first(void) AW_REQUIRES(timer_lock)
{
	struct aw_watch *next = NULL;

	for (uint64_t left = timers_used; left; left &= left - 1) {
		struct aw_watch *w = TAILQ_FIRST(&timers[__builtin_ctzll(left)]);

		if (!next || w->deadline_ns < next->deadline_ns)
			next = w;
	}
	return next;
}

static void unlist(struct aw_watch *w) AW_REQUIRES(timer_lock)
{
	if (w->deadline_ns) {
		TAILQ_REMOVE(w->timers, w, timer);
		if (TAILQ_EMPTY(w->timers))
			timers_used &= ~(UINT64_C(1) << (w->timers - timers));
	}
	w->deadline_ns = 0;
}

/* Durations are few and constant, so the place in a list is at or near its end. */
static void list(struct aw_watch *w, uint64_t us) AW_REQUIRES(timer_lock)
{
	uint64_t deadline_ns = aw_now_ns() + us * US_NS;
	struct timer_list *among = &timers[63 - __builtin_clzll(us)];
	struct aw_watch *before = TAILQ_LAST(among, timer_list);

	while (before && before->deadline_ns > deadline_ns)
		before = TAILQ_PREV(before, timer_list, timer);
	w->deadline_ns = deadline_ns;
	w->timers = among;
	timers_used |= UINT64_C(1) << (among - timers);
	if (before)
		TAILQ_INSERT_AFTER(among, before, w, timer);
	else
		TAILQ_INSERT_HEAD(among, w, timer);
}

/* if_first: what was set before stays. */
static void set_deadline(struct aw_watch *w, uint64_t us, bool if_first)
{
	bool earlier = false;

	aw_lock(&timer_lock);
	if (!w->timed || !if_first) {
		w->timed = true;
		unlist(w);
		if (us > 0 && !w->ended) {
			list(w, us);
			earlier = wakes_ns == 0 || w->deadline_ns < wakes_ns;
		}
		if (earlier)
			wakes_ns = w->deadline_ns;
	}
	aw_unlock(&timer_lock);
	if (earlier && !aw_engine_is_self())
		aw_engine_kick();
}

void aw_watch_deadline(struct aw_watch *w, uint32_t ms)
{
	aw_watch_deadline_us(w, (uint64_t)ms * MS_US);
}

void aw_watch_deadline_us(struct aw_watch *w, uint64_t us)
{
	set_deadline(w, us, false);
}

/* No handler can run before epoll_ctl, whose event may come at once. */
int aw_watch_begin(struct aw_watch *w, int fd, uint32_t events, uint32_t ms)
{
	uint32_t handle = w->handle;
	struct aw_watch *held = aw_table_get(&table, handle);
	int err = 0;

	assert(held == w);
	if (events) {
		atomic_store_explicit(&w->events, events, memory_order_relaxed);
		err = control_fd(EPOLL_CTL_ADD, fd, w, events);
	}
	if (!err)
		set_deadline(held, (uint64_t)ms * MS_US, true);
	aw_table_put(&table, handle);
	if (err) {
		aw_table_withdraw_wait(&table, handle);
		aw_table_cancel(&table, handle);
	}
	return err;
}

void aw_watch_after(struct aw_after *after)
{
	assert(aw_engine_is_self());
	STAILQ_INSERT_TAIL(&afters, after, entry);
}

void aw_watch_run_after(void)
{
	struct aw_after *after;

	while ((after = STAILQ_FIRST(&afters))) {
		STAILQ_REMOVE_HEAD(&afters, entry);
		after->fn(after);
	}
}

static void end(struct aw_watch *w)
{
	aw_watch_events(w, 0);
	aw_lock(&timer_lock);
	unlist(w);
	w->ended = true;
	aw_unlock(&timer_lock);
}

void aw_watch_remove(struct aw_watch *w)
{
	end(w);
	aw_table_remove(&table, w->handle);
}

void aw_watch_remove_wait(struct aw_watch *w)
{
	assert(!aw_engine_is_self());
	end(w);
	aw_table_remove_wait(&table, w->handle);
}

static void handle_events(uint64_t key, uint32_t events)
{
	uint32_t handle = (uint32_t)key;
	struct aw_watch *w = aw_table_get(&table, handle);

	if (!w)
		return;
	if (aw_watch_key(w) == key)
		w->fn(w, events);
	aw_table_put(&table, handle);
}

void aw_watch_look(uint64_t key)
{
	assert(aw_engine_is_self());
	handle_events(key, EPOLLIN);
}

void aw_watch_dispatch(uint64_t key, uint32_t events)
{
	handle_events(key, events);
	aw_watch_run_after();
}

uint64_t aw_watch_run_timers(void)
{
	uint64_t now = aw_now_ns();
	struct aw_watch *w;

	aw_lock(&timer_lock);
	while ((w = first()) && w->deadline_ns <= now) {
		uint64_t key = aw_watch_key(w);

		unlist(w);
		aw_unlock(&timer_lock);
		aw_watch_dispatch(key, AW_WATCH_TIMEOUT);
		aw_lock(&timer_lock);
	}
	if (wakes_ns <= now)
		wakes_ns = 0;
	if (w && (wakes_ns == 0 || w->deadline_ns < wakes_ns))
		wakes_ns = w->deadline_ns;
	uint64_t next = wakes_ns;

	aw_unlock(&timer_lock);
	return next;
}

void aw_watch_fork_prepare(void) AW_ACQUIRE(timer_lock, table.lock)
{
	aw_lock(&timer_lock);
	aw_table_fork_prepare(&table);
}

void aw_watch_fork_parent(void) AW_RELEASE(timer_lock, table.lock)
{
	aw_table_fork_parent(&table);
	aw_unlock(&timer_lock);
}

/* The parent's watches stay in the table until their owners remove them, but never fire here. */
void aw_watch_fork_child(void) AW_RELEASE(timer_lock, table.lock)
{
	struct aw_watch *w;

	while ((w = first()))
		unlist(w);
	wakes_ns = 0;
	aw_table_fork_child(&table);
	aw_unlock(&timer_lock);
}
