// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reading and writing by the endpoint, as a blocking socket does it.
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "xsock/left.h"
#include "xsock/preload/direct.h"
#include "xsock/preload/libc.h"
#include "xsock/preload/touch.h"

#define WINDOW 16 /* vectors a call of the endpoint */
#define ENDED (-1) /* the stream */
#define MOVED (-2) /* the connection: look at fd again */

/* A call under way. */
struct transfer {
	const struct iovec *iov;
	int count, flags;
	size_t done, len;
	int err; /* why it is over: an errno, ENDED or MOVED; 0: it is not */
};

static size_t length_of(const struct iovec *iov, int count)
{
	size_t len = 0;

	for (int i = 0; i < count; i++)
		len += iov[i].iov_len;
	return len;
}

/* What is left of the vectors, as much as the window holds. */
static int look_out(const struct transfer *t, struct iovec window[WINDOW])
{
	size_t skip = t->done;
	int n = 0;

	for (int i = 0; i < t->count && n < WINDOW; i++) {
		if (skip >= t->iov[i].iov_len) {
			skip -= t->iov[i].iov_len;
			continue;
		}
		window[n].iov_base = (uint8_t *)t->iov[i].iov_base + skip;
		window[n++].iov_len = t->iov[i].iov_len - skip;
		skip = 0;
	}
	return n;
}

/*
 * The kernel restarts a call where the handler wants it (SA_RESTART). Which handler has run is not known: the call
 * is restarted if that is right for all there are, and never where there is a time-out.
 */
static bool restarts(int64_t timeout_ns)
{
	struct sigaction action;

	if (timeout_ns >= 0)
		return false;
	for (int sig = 1; sig < NSIG; sig++) {
		if (sigaction(sig, NULL, &action) != 0)
			continue;
		if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN &&
		    !(action.sa_flags & SA_RESTART))
			return false;
	}
	return true;
}

/*
 * A handler of a signal may come to the same endpoint: it must not find us in it. Where there are no handlers
 * nothing need be blocked.
 */
struct shield {
	bool up;
	int cancel; /* who is cancelled is so before it has begun, or while it sleeps */
	sigset_t before;
};

static void raise_shield(struct shield *shield)
{
	sigset_t all;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &shield->cancel);
	shield->up = aw_direct_has_handlers();
	if (!shield->up)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &shield->before);
}

static void lower_shield(const struct shield *shield)
{
	if (shield->up)
		pthread_sigmask(SIG_SETMASK, &shield->before, NULL);
	pthread_setcancelstate(shield->cancel, NULL);
}

/* Waits by the socket's rules; signals come through while it sleeps. */
static void await(struct aw_direct *direct, struct transfer *t, short events, int64_t timeout_ns,
		  const struct shield *shield)
{
	int ready;

	if (t->flags & MSG_DONTWAIT) {
		t->err = EAGAIN;
		return;
	}
	pthread_setcancelstate(shield->cancel, NULL);
	ready = aw_direct_engine->wait(direct->ep, events, timeout_ns,
				       shield->up ? &shield->before : NULL);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	if (ready > 0 || (ready == -EINTR && restarts(timeout_ns)))
		return;
	if (ready == 0)
		t->err = EAGAIN;
	else
		t->err = ready == -ECANCELED ? MOVED : -ready;
}

static void receive(struct aw_direct *direct, struct transfer *t, const struct shield *shield)
{
	bool whole = t->flags & MSG_WAITALL && !(t->flags & MSG_PEEK);
	struct iovec window[WINDOW];

	while (!t->err && (t->done == 0 || (whole && t->done < t->len))) {
		ssize_t got = aw_direct_engine->recv(direct->ep, window, look_out(t, window),
						     t->flags & MSG_PEEK);

		if (got > 0)
			t->done += (size_t)got;
		else if (got == -EAGAIN)
			await(direct, t, POLLIN, atomic_load(&direct->receive_ns), shield);
		else
			t->err = got ? (int)-got : ENDED;
	}
}

static void transmit(struct aw_direct *direct, struct transfer *t, const struct shield *shield)
{
	struct iovec window[WINDOW];

	while (!t->err && t->done < t->len) {
		ssize_t taken = aw_direct_engine->send(direct->ep, window, look_out(t, window),
						       t->flags & MSG_MORE);

		if (taken >= 0)
			t->done += (size_t)taken;
		else if (taken == -EAGAIN)
			await(direct, t, POLLOUT, atomic_load(&direct->send_ns), shield);
		else
			t->err = (int)-taken;
	}
}

typedef void work_fn(struct aw_direct *direct, struct transfer *t, const struct shield *shield);

/* Out of a handler by siglongjmp: the endpoint has seen to itself. */
static void leave_for_good(void *direct)
{
	aw_direct_leave(direct);
}

/* With the endpoint, as far as it goes. False: it has none (any more). */
static bool by_endpoint(int fd, struct transfer *t, work_fn *work)
{
	struct aw_direct *direct;
	struct _pthread_cleanup_buffer left;
	struct shield shield;

	pthread_testcancel(); /* as libc's call would be cancelled */
	direct = aw_direct_enter(fd);
	if (!direct)
		return false;
	raise_shield(&shield);
	aw_left_push(&left, leave_for_good, direct);
	work(direct, t, &shield);
	aw_left_pop(&left, 0);
	aw_direct_leave(direct);
	lower_shield(&shield);
	return true;
}

/* What the endpoint has begun goes on by the kernel. */
static void go_on(int fd, struct transfer *t, bool sends)
{
	struct iovec window[WINDOW];

	t->err = 0;
	while (!t->err && t->done < t->len) {
		struct msghdr msg = { .msg_iov = window };
		ssize_t n;

		msg.msg_iovlen = (size_t)look_out(t, window);
		n = sends ? aw_libc()->sendmsg(fd, &msg, t->flags)
			  : aw_libc()->recvmsg(fd, &msg, t->flags);
		if (n > 0)
			t->done += (size_t)n;
		else
			t->err = n ? errno : ENDED;
	}
}

static void finish(int fd, struct transfer *t, bool sends, ssize_t *result)
{
	if (t->err == MOVED)
		go_on(fd, t, sends);
	*result = (ssize_t)t->done;
	if (t->done > 0 || t->err <= 0)
		return;
	if (t->err == EPIPE && sends && !(t->flags & MSG_NOSIGNAL))
		raise(SIGPIPE);
	errno = t->err;
	*result = -1;
}

/* A process that was forked behind our back has the near end alone, which nobody serves. */
static bool is_stranded(int fd, ssize_t *result)
{
	if (aw_fdtab_state(fd) != AW_FD_DIRECT || aw_direct_is_alive())
		return false;
	errno = EIO;
	*result = -1;
	return true;
}

static bool run(int fd, struct transfer *t, bool sends, ssize_t *result)
{
	for (;;) {
		if (by_endpoint(fd, t, sends ? transmit : receive)) {
			if (t->err == MOVED && !t->done) {
				t->err = 0;
				continue;
			}
			finish(fd, t, sends, result);
			return true;
		}
		if (is_stranded(fd, result))
			return true;
		if (aw_touch_direct(fd, sends ? AW_TOUCH_WRITE : AW_TOUCH_READ,
				    t->flags & MSG_DONTWAIT)) {
			*result = -1;
			return true;
		}
		if (aw_fdtab_state(fd) != AW_FD_DIRECT)
			return false;
	}
}

/* Whether the call has a direct form, odd flags having none. */
static bool is_suited(struct transfer *t, int odd)
{
	if (!aw_direct_is_on() || t->flags & odd || t->count > IOV_MAX)
		return false;
	t->len = length_of(t->iov, t->count);
	return t->len > 0;
}

bool aw_direct_receive(int fd, const struct iovec *iov, int count, int flags, ssize_t *result)
{
	const int odd = MSG_OOB | MSG_TRUNC | MSG_ERRQUEUE;
	struct transfer t = { .iov = iov, .count = count, .flags = flags };

	if (!is_suited(&t, odd)) {
		*result = -1;
		return aw_touch(fd, AW_TOUCH_READ, flags & MSG_DONTWAIT) != 0;
	}
	return run(fd, &t, false, result);
}

bool aw_direct_transmit(int fd, const struct iovec *iov, int count, int flags, ssize_t *result)
{
	struct transfer t = { .iov = iov, .count = count, .flags = flags };

	if (!is_suited(&t, MSG_OOB)) {
		*result = -1;
		return aw_touch(fd, AW_TOUCH_WRITE, flags & MSG_DONTWAIT) != 0;
	}
	return run(fd, &t, true, result);
}
