// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The sleep of a thread on a channel's epoll set. The sleep behaves as read(2) on a
// channel's fd does. Where there can be no set, and in the child of a fork, the thread does call
// read(2), of event_fd.
#include "net/qp/channel_wait.h"

#include "base/clock.h"
#include "net/base/cleanup.h"
#include "net/mem/pool.h"
#include "net/qp/flush.h"
#include "net/qp/serving.h"
#include "net/qp/uqp_sock.h"
#include "net/qp/watched.h"
#include "ring/lock.h"
#include "ring/table.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_MAX 16 /* events served before the program regains control */
#define MS 1000000u
#define LIMIT_MAX INT64_C(1000000000000) /* ns; a longer limit is cut to this */

static _Thread_local int64_t sleep_limit_ns = -1; /* negative: no limit */

void aw_channel_limit(int64_t timeout_ns)
{
	sleep_limit_ns = timeout_ns;
}

/* The time left in milliseconds, as poll(2) takes it; end_ns 0: no limit. */
static int left_ms(uint64_t end_ns)
{
	uint64_t now = end_ns ? aw_now_ns() : 0;

	if (!end_ns)
		return -1;
	return now < end_ns ? (int)((end_ns - now + MS - 1) / MS) : 0;
}

static uint64_t end_of_sleep(void)
{
	uint64_t limit = sleep_limit_ns < LIMIT_MAX ? (uint64_t)sleep_limit_ns : LIMIT_MAX;

	return sleep_limit_ns < 0 ? 0 : aw_now_ns() + limit;
}

static void leave(void *arg)
{
	struct aw_channel *ch = arg;

	atomic_store_explicit(&ch->woke_ns, aw_now_ns(), memory_order_relaxed);
	atomic_fetch_add_explicit(&ch->waiting.turns, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&ch->waiters, 1, memory_order_relaxed);
}

/*
 * Sleeps until an fd of the set is ready. poll(2) goes on behind a stop and a continue, where epoll_wait
 * returns EINTR. A thread that is cancelled meanwhile, or leaves by longjmp from a signal handler, no
 * longer counts as a waiter.
 */
static int sleep_on(struct aw_channel *ch, uint64_t end_ns, int cancel_state)
{
	struct pollfd pollfd = { .fd = ch->epfd, .events = POLLIN };
	struct _pthread_cleanup_buffer left;
	int n;

	atomic_fetch_add_explicit(&ch->waiters, 1, memory_order_relaxed);
	_pthread_cleanup_push(&left, leave, ch);
	pthread_setcancelstate(cancel_state, NULL);
	n = poll(&pollfd, 1, left_ms(end_ns));
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	_pthread_cleanup_pop(&left, 1);
	return n;
}

/*
 * poll(2) returns EINTR after every handler. read(2) goes on after a handler with SA_RESTART, unless
 * there is a time limit. The thread cannot know which signal it was, so it returns EINTR if some
 * signal has a handler that would end read(2).
 */
static bool interrupts(void)
{
	struct sigaction sa;
	sigset_t blocked;

	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	for (int sig = 1; sig <= SIGRTMAX; sig++) {
		/* A thread that raises this by its own fault has not slept, though many programs handle it. */
		bool is_fault = sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL ||
				sig == SIGTRAP || sig == SIGSYS || sig == SIGABRT;

		if (!is_fault && !sigismember(&blocked, sig) && sigaction(sig, NULL, &sa) == 0 &&
		    sa.sa_handler != SIG_DFL && sa.sa_handler != SIG_IGN &&
		    (sleep_limit_ns >= 0 || !(sa.sa_flags & SA_RESTART)))
			return true;
	}
	return false;
}

/*
 * The QPs of a set that have news. The only QP that the channel's threads serve is known without a system call. Returns how
 * many handles it writes.
 */
static int find_ready(const struct aw_channel *ch, int set, uint32_t handles[EVENTS_MAX])
{
	struct epoll_event ready[EVENTS_MAX];
	int n, found = 0;

	handles[0] = atomic_load_explicit(&ch->only_qp, memory_order_relaxed);
	if (handles[0] != AW_CHANNEL_MANY)
		return 1;
	n = epoll_wait(set, ready, EVENTS_MAX, 0);
	for (int i = 0; i < n; i++)
		if (ready[i].data.u64 != AW_EVENT_FD_KEY)
			handles[found++] = (uint32_t)ready[i].data.u64;
	return found;
}

static void serve_ready(const struct aw_channel *ch, int set)
{
	uint32_t handles[EVENTS_MAX];
	int n = find_ready(ch, set, handles);

	for (int i = 0; i < n; i++)
		aw_uqp_on_wake(handles[i]);
}

static bool has_watched(const struct aw_channel *ch)
{
	return atomic_load_explicit(&ch->watched, memory_order_acquire) > 0;
}

/* Serves all QPs that woke the thread, so that none starves behind another, until there is an event. */
static int sleep_and_serve(struct aw_channel *ch, int cancel_state, void **object, int *kind)
{
	uint64_t end_ns = end_of_sleep();
	int n;

	do {
		n = sleep_on(ch, end_ns, cancel_state);
		if (n < 0 && (errno != EINTR || interrupts()))
			return errno;
		if (n == 0)
			return ETIMEDOUT;
		aw_channel_hold(ch);
		if (n > 0)
			serve_ready(ch, ch->epfd);
		if (n > 0 && has_watched(ch))
			serve_ready(ch, ch->fd);
	} while (!aw_channel_release(ch, object, kind));
	return 0;
}

/* Handles of QPs that a look at a channel has found, or AW_TABLE_NONE. */
struct look_result {
	uint32_t armed; /* its bytes moved, but no event of its armed CQs came of that */
	uint32_t belled; /* likewise, of a bell whose bytes another thread had taken */
	uint32_t unarmed; /* its bytes moved, and no CQ was armed */
};

static void end_eventful(uint32_t handle)
{
	struct aw_uqp *qp = aw_uqp_at(handle);

	if (!qp)
		return;
	aw_lock(&qp->lock);
	aw_eventful_end(&qp->serving.eventful);
	aw_unlock(&qp->lock);
	aw_uqp_put(qp);
	aw_serving_look_again();
}

static void look_at(uint32_t handle, struct look_result *found)
{
	struct aw_uqp *qp = aw_uqp_at(handle);

	if (!qp)
		return;
	aw_lock(&qp->lock);
	const struct aw_watched_seen before = aw_watched_see(qp);
	uint32_t armed = aw_serving_armed(qp), raised = aw_cq_pushes_of_thread().events;

	if (qp->fd >= 0)
		aw_uqp_serve(qp);
	const struct aw_watched_seen now = aw_watched_see(qp);
	bool moved = aw_watched_have_moved(&before, &now);
	bool silent = aw_cq_pushes_of_thread().events == raised;

	if (moved && armed == 0)
		found->unarmed = handle;
	else if (moved && silent)
		found->armed = handle;
	else if (now.bells != before.bells && silent)
		found->belled = handle;
	aw_watched_served(qp);
	aw_uqp_unlock(qp);
	aw_uqp_put(qp);
}

static void wake_cq(uint32_t handle, const struct aw_channel *ch)
{
	struct aw_uqp *qp = aw_uqp_at(handle);

	if (!qp)
		return;
	(void)aw_watched_wake(qp, ch);
	aw_uqp_put(qp);
}

static int add_moving(const struct aw_channel *ch, uint32_t handles[EVENTS_MAX], int n)
{
	uint32_t moving = atomic_load(&ch->moving);

	if (moving != AW_CHANNEL_NONE && n < EVENTS_MAX)
		handles[n++] = moving;
	return n;
}

/*
 * A QP comes and goes under moving. One whose socket has woken this thread as it joined is in moving at first, or in the set; one that the
 * progress thread has taken from the set is in moving behind that, or has its event in the channel.
 */
static int find_watched(const struct aw_channel *ch, uint32_t handles[EVENTS_MAX])
{
	uint32_t joining[EVENTS_MAX];
	int joins = add_moving(ch, joining, 0);
	int n = has_watched(ch) ? find_ready(ch, ch->fd, handles) : 0;

	if (joins > 0 && n < EVENTS_MAX)
		handles[n++] = joining[0];
	return add_moving(ch, handles, n);
}

/*
 * For a thread that does not sleep here, and may have come because the fd is readable by a socket: serves the QPs of
 * watchers. True with an event.
 */
static bool look(struct aw_channel *ch, void **object, int *kind)
{
	struct look_result found = { AW_TABLE_NONE, AW_TABLE_NONE, AW_TABLE_NONE };
	uint32_t handles[EVENTS_MAX];

	int n = find_watched(ch, handles);

	if (n == 0 && !has_watched(ch))
		return false;
	aw_activity_count(&ch->waiting.turns, 1);
	aw_serving_loop_turns();

	aw_channel_hold(ch);
	for (int i = 0; i < n; i++)
		look_at(handles[i], &found);
	bool taken = aw_channel_release(ch, object, kind);

	if (found.armed != AW_TABLE_NONE)
		end_eventful(found.armed);
	if (taken)
		return true;
	if (found.unarmed != AW_TABLE_NONE)
		end_eventful(found.unarmed);
	if (found.armed != AW_TABLE_NONE)
		wake_cq(found.armed, ch);
	else if (found.belled != AW_TABLE_NONE)
		wake_cq(found.belled, ch);
	return aw_channel_take(ch, object, kind);
}

static bool take_now(struct aw_channel *ch, void **object, int *kind)
{
	if (!aw_channel_take(ch, object, kind))
		return false;
	atomic_store_explicit(&ch->took_ns, aw_now_ns(), memory_order_relaxed);
	return true;
}

/* Reads where there is no set. */
static int read_limited(struct aw_channel *ch, void **object, int *kind)
{
	struct pollfd pollfd = { .fd = ch->event_fd, .events = POLLIN };
	uint64_t end_ns = end_of_sleep();
	int ready = 1;

	if (end_ns) {
		do
			ready = poll(&pollfd, 1, left_ms(end_ns));
		while (ready < 0 && errno == EINTR && !interrupts());
	}
	if (ready <= 0)
		return ready ? errno : ETIMEDOUT;
	return aw_channel_read(ch, object, kind);
}

/*
 * A thread can be cancelled only where it sleeps: elsewhere it would leave locks taken. A program that
 * has closed the fd gets EBADF.
 */
int aw_channel_await(struct aw_channel *ch, void **object, int *kind)
{
	int cancel_state, flags, err = 0;
	bool reads = false;

	aw_flush_posts();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	if (!take_now(ch, object, kind) && !look(ch, object, kind)) {
		flags = fcntl(ch->fd, F_GETFL);
		if (flags < 0)
			err = errno;
		else if (flags & O_NONBLOCK)
			err = aw_channel_take(ch, object, kind) ? 0 : EAGAIN;
		else if (aw_channel_open_set(ch))
			err = sleep_and_serve(ch, cancel_state, object, kind);
		else
			reads = true;
	}
	pthread_setcancelstate(cancel_state, NULL);
	return reads ? read_limited(ch, object, kind) : err;
}
