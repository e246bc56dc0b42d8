// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reading and writing by the endpoint, as a blocking socket does it.
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "xsock/left.h"
#include "xsock/now.h"
#include "xsock/preload/direct.h"
#include "xsock/preload/libc.h"
#include "xsock/preload/shield.h"
#include "xsock/preload/touch.h"

#define WINDOW 16 /* vectors a call of the endpoint */
#define ENDED (-1) /* the stream */
#define MOVED (-2) /* the connection: look at fd again */
#define STUCK (-3) /* the peer makes no room */
#define ROOM_NS INT64_C(20000000) /* for which it is waited so long here, and then by a carrier */

/* A call under way. */
struct transfer {
	const struct iovec *iov;
	int count, flags;
	size_t done, len;
	bool stays; /* the connection, however long it takes: it could not be handed on */
	bool interrupted; /* before anything was taken for which TCP would have had room */
	int err; /* why it is over: an errno, ENDED, MOVED or STUCK; 0: it is not */
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

/* What a wait has brought; limit_ns: the socket's own. */
static void judge(struct transfer *t, int ready, int64_t limit_ns)
{
	if (ready > 0 || (ready == -EINTR && aw_shield_restarts(limit_ns)))
		return;
	if (ready == 0)
		t->err = EAGAIN;
	else
		t->err = ready == -ECANCELED ? MOVED : -ready;
}

/* Waits by the socket's rules; signals come through while it sleeps. */
static void await(struct aw_direct *direct, struct transfer *t, short events, int64_t timeout_ns,
		  int64_t limit_ns, const struct aw_shield *shield)
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
	judge(t, ready, limit_ns);
}

static void receive(struct aw_direct *direct, struct transfer *t, const struct aw_shield *shield)
{
	int64_t limit_ns = atomic_load(&direct->receive_ns);
	bool whole = t->flags & MSG_WAITALL && !(t->flags & MSG_PEEK);
	struct iovec window[WINDOW];

	while (!t->err && (t->done == 0 || (whole && t->done < t->len))) {
		ssize_t got = aw_direct_engine->recv(direct->ep, window, look_out(t, window),
						     t->flags & MSG_PEEK);

		if (got > 0)
			t->done += (size_t)got;
		else if (got == -EAGAIN)
			await(direct, t, POLLIN, limit_ns, limit_ns, shield);
		else
			t->err = got ? (int)-got : ENDED;
	}
}

/* Who may not wait would often find room in TCP. stuck_ns: when the peer's room will have been waited for long enough; 0: it begins now. */
static void await_room(struct aw_direct *direct, struct transfer *t, int64_t *stuck_ns,
		       const struct aw_shield *shield)
{
	int64_t limit_ns = atomic_load(&direct->send_ns), left_ns;

	if (t->flags & MSG_DONTWAIT) {
		t->err = t->done || t->stays ? EAGAIN : STUCK;
		return;
	}
	if (t->stays || (limit_ns >= 0 && limit_ns <= ROOM_NS)) {
		await(direct, t, POLLOUT, limit_ns, limit_ns, shield);
		return;
	}
	if (!*stuck_ns)
		*stuck_ns = aw_xs_now_ns() + ROOM_NS;
	left_ns = *stuck_ns - aw_xs_now_ns();
	await(direct, t, POLLOUT, left_ns > 0 ? left_ns : 0, limit_ns, shield);
	t->interrupted = t->err == EINTR && !t->done;
	if (t->interrupted || t->err == EAGAIN)
		t->err = STUCK;
}

/* What was taken is not to be lost with the process, from here on. Who may not wait for that does not. */
static void hand_to_tcp(struct aw_direct *direct, struct transfer *t,
			const struct aw_shield *shield)
{
	int64_t limit_ns = atomic_load(&direct->send_ns);
	int err;

	if (t->err || t->done < AW_DIRECT_LITTLE || t->flags & MSG_DONTWAIT)
		return;
	pthread_setcancelstate(shield->cancel, NULL);
	do
		err = aw_direct_engine->settle(direct->ep, limit_ns,
					       shield->up ? &shield->before : NULL);
	while (err == -EINTR && aw_shield_restarts(limit_ns));
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	if (err == -ECANCELED)
		t->err = MOVED;
}

/*
 * TCP takes octets for a peer that has closed until it hears that they are not wanted: those that are written before
 * the peer's answer to the start-up, and the first ones behind its end.
 */
static bool is_taken(struct aw_direct *direct, bool early)
{
	return early ||
	       (aw_direct_engine->has_left(direct->ep) && !atomic_exchange(&direct->shunned, true));
}

static void transmit(struct aw_direct *direct, struct transfer *t, const struct aw_shield *shield)
{
	struct iovec window[WINDOW];
	int64_t stuck_ns = 0;
	bool early = false;

	while (!t->err && t->done < t->len) {
		ssize_t taken = aw_direct_engine->send(direct->ep, window, look_out(t, window),
						       t->flags & (MSG_MORE | MSG_DONTWAIT));

		if (taken >= 0) {
			t->done += (size_t)taken;
			stuck_ns = 0;
		} else if (taken == -EAGAIN) {
			early |= aw_direct_engine->is_early(direct->ep);
			await_room(direct, t, &stuck_ns, shield);
		} else if (taken == -EPIPE && !t->done && is_taken(direct, early)) {
			t->done = t->len;
		} else {
			t->err = (int)-taken;
		}
	}
	hand_to_tcp(direct, t, shield);
}

typedef void work_fn(struct aw_direct *direct, struct transfer *t, const struct aw_shield *shield);

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
	struct aw_shield shield;

	pthread_testcancel(); /* as libc's call would be cancelled */
	direct = aw_direct_enter(fd);
	if (!direct)
		return false;
	aw_shield_raise(&shield);
	aw_left_push(&left, leave_for_good, direct);
	work(direct, t, &shield);
	aw_left_pop(&left, 0);
	aw_direct_leave(direct);
	aw_shield_lower(&shield);
	return true;
}

/* What the endpoint has begun goes on by the kernel; who was interrupted waits no more. */
static void go_on(int fd, struct transfer *t, bool sends)
{
	int flags = t->flags | (t->interrupted ? MSG_DONTWAIT : 0);
	struct iovec window[WINDOW];

	t->err = 0;
	while (!t->err && t->done < t->len) {
		struct msghdr msg = { .msg_iov = window };
		ssize_t n;

		msg.msg_iovlen = (size_t)look_out(t, window);
		n = sends ? aw_libc()->sendmsg(fd, &msg, flags)
			  : aw_libc()->recvmsg(fd, &msg, flags);
		if (n > 0)
			t->done += (size_t)n;
		else
			t->err = n ? errno : ENDED;
	}
	if (t->interrupted && t->err == EAGAIN)
		t->err = EINTR;
}

static void finish(const struct transfer *t, bool sends, ssize_t *result)
{
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

/* Whether the call is to look at fd again: what was taken has gone with a connection that has moved. */
static bool looks_again(int fd, struct transfer *t)
{
	if (t->err != MOVED && t->err != STUCK)
		return false;
	if (t->err == STUCK)
		t->stays = aw_direct_convert(fd) != 0;
	t->err = t->stays && t->interrupted ? EINTR : 0;
	return !t->err;
}

/* It is, or may be once more when another connection has been handed on: nobody reads what the kernel would take. */
static bool may_be_direct(int fd)
{
	enum aw_fd_state state = aw_fdtab_state(fd);

	return state == AW_FD_DIRECT || state == AW_FD_STARTING;
}

static bool run(int fd, struct transfer *t, bool sends, ssize_t *result)
{
	for (;;) {
		if (by_endpoint(fd, t, sends ? transmit : receive)) {
			if (looks_again(fd, t))
				continue;
			finish(t, sends, result);
			return true;
		}
		if (is_stranded(fd, result))
			return true;
		if (aw_touch_direct(fd, sends ? AW_TOUCH_WRITE : AW_TOUCH_READ,
				    t->flags & MSG_DONTWAIT)) {
			*result = -1;
			return true;
		}
		if (may_be_direct(fd))
			continue;
		if (!t->done && !t->interrupted)
			return false;
		go_on(fd, t, sends);
		finish(t, sends, result);
		return true;
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
