// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: epoll. Registrations of what may still be swapped are remembered, and what tells of the
// start-up alone is kept from the program.
#include <errno.h>
#include <limits.h>

#include "xsock/base/libc.h"
#include "xsock/framed/bridge.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/preamble.h"
#include "xsock/preload/wait.h"
#include "xsock/process/mode.h"
#include "xsock/process/sandbox.h"
#include "xsock/process/watch.h"

/* A fresh socket needs a record once something is to be remembered of it. */
static void make_record(int fd)
{
	bool may = aw_mode_may(false);

	aw_fdtab_lock();
	if (may)
		(void)aw_fdtab_need(fd);
	aw_fdtab_unlock();
}

static int control(int epfd, int op, int fd, struct epoll_event *event)
{
	struct epoll_event more;
	struct aw_sock *sock;
	int result;
	bool wide;

	aw_fdtab_lock();
	sock = aw_fdtab_get_started(fd);
	wide = event && op != EPOLL_CTL_DEL && sock && sock->state == AW_FD_CONNECTING &&
	       !(event->events & EPOLLOUT);
	if (wide) {
		more = *event;
		more.events |= EPOLLOUT;
	}
	result = aw_libc()->epoll_ctl(epfd, op, fd, wide ? &more : event);
	if (result == 0 && sock && sock->state != AW_FD_BRIDGED && sock->state != AW_FD_FRAMED &&
	    sock->state != AW_FD_LISTENER)
		aw_watch_note(sock, epfd, op, fd, event, wide);
	if (result == 0 && sock && sock->preamble_ns && op != EPOLL_CTL_DEL)
		aw_preamble_wake(sock);
	aw_fdtab_unlock();
	return result;
}

static void drop_candidate(int fd)
{
	struct aw_sock *sock;

	aw_fdtab_lock();
	sock = aw_fdtab_need(fd);
	if (sock && sock->state == AW_FD_CANDIDATE)
		aw_fdtab_drop(sock);
	aw_fdtab_unlock();
}

/* A connect in iWARP mode makes a candidate CONNECTING: a candidate that has a peer was connected as plain TCP, and stays so. */
static int control_candidate(int epfd, int op, int fd, struct epoll_event *event)
{
	struct sockaddr_storage remote;
	socklen_t len = sizeof(remote);
	int err = errno;

	if (aw_libc()->getpeername(fd, (struct sockaddr *)&remote, &len) == 0)
		drop_candidate(fd);
	else
		make_record(fd);
	/* An epoll_ctl that succeeds leaves errno alone: gRPC looks there for EINPROGRESS of the connect before. */
	errno = err;
	return control(epfd, op, fd, event);
}

AW_WRAPPER int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	switch (aw_fdtab_state(fd)) {
	case AW_FD_NONE:
	case AW_FD_LISTENER:
	case AW_FD_BRIDGED:
	case AW_FD_FRAMED:
		return aw_libc()->epoll_ctl(epfd, op, fd, event);
	case AW_FD_INTERNAL:
		errno = EBADF;
		return -1;
	case AW_FD_CANDIDATE:
		return control_candidate(epfd, op, fd, event);
	case AW_FD_CONNECTING:
	case AW_FD_PENDING:
		aw_first_io_slow(fd, AW_FIRST_POLL, true);
		return control(epfd, op, fd, event);
	case AW_FD_STARTING:
		return control(epfd, op, fd, event);
	}
	return aw_libc()->epoll_ctl(epfd, op, fd, event);
}

/* What an event's data is registered for, if that may still be swapped. */
static int undecided_fd_of(int epfd, const struct epoll_event *event, uint32_t *wanted)
{
	struct aw_watch *watch;
	struct aw_sock *sock;
	int fd = -1;

	aw_fdtab_lock();
	watch = aw_watch_find(epfd, event->data, &sock);
	if (watch) {
		fd = watch->fd;
		*wanted = watch->event.events;
	}
	aw_fdtab_unlock();
	return fd;
}

/* The program sees the event, unless the swap came first: the new registration tells what there is. */
static bool is_told(int epfd, const struct epoll_event *event, int fd)
{
	struct aw_watch *watch;
	struct aw_sock *sock;
	bool told;

	aw_fdtab_lock();
	watch = aw_watch_find(epfd, event->data, &sock);
	if (watch)
		watch->told = watch->event.events & EPOLLONESHOT;
	told = watch || aw_fdtab_state(fd) != AW_FD_BRIDGED;
	aw_fdtab_unlock();
	return told;
}

/* What was kept from the program was none: a one-shot registration has yet to tell. */
static void renew(int epfd, const struct epoll_event *event)
{
	struct aw_watch *watch;
	struct aw_sock *sock;

	aw_fdtab_lock();
	watch = aw_watch_find(epfd, event->data, &sock);
	if (watch && watch->event.events & EPOLLONESHOT && !watch->told)
		aw_libc()->epoll_ctl(epfd, EPOLL_CTL_MOD, watch->fd, &watch->event);
	aw_fdtab_unlock();
}

/*
 * The Request alone may have been what the kernel told of: what there is now counts. A one-shot registration that the
 * program has not heard of has yet to tell.
 */
static bool is_for_framed(int epfd, int fd, struct epoll_event *event, uint32_t wanted)
{
	struct epoll_event again = { .events = wanted, .data = event->data };

	event->events = (uint16_t)aw_first_io_poll(fd, (short)(wanted & 0xffff), 0);
	if (!event->events && wanted & EPOLLONESHOT)
		aw_libc()->epoll_ctl(epfd, EPOLL_CTL_MOD, fd, &again);
	return event->events;
}

/* Whether the program is to see this event, and which part of it. */
static bool is_for_program(int epfd, struct epoll_event *event)
{
	uint32_t wanted;
	int fd = undecided_fd_of(epfd, event, &wanted);

	if (fd < 0)
		return true;
	aw_first_io_slow(fd, AW_FIRST_POLL, true);
	if (aw_fdtab_state(fd) == AW_FD_FRAMED)
		return is_for_framed(epfd, fd, event, wanted);
	if (aw_preamble_hides(fd))
		event->events &= ~(EPOLLIN | EPOLLRDNORM);
	event->events &= wanted | EPOLLERR | EPOLLHUP;
	if (!event->events)
		renew(epfd, event);
	return event->events && is_told(epfd, event, fd);
}

static int filter(int epfd, struct epoll_event *events, int count)
{
	int kept = 0;

	for (int i = 0; i < count; i++) {
		struct epoll_event event = events[i];

		if (is_for_program(epfd, &event))
			events[kept++] = event;
	}
	return kept;
}

/* Kernels before 5.11, and sandboxes, know no epoll_pwait2: milliseconds then. */
static int wait_once(int epfd, struct epoll_event *events, int max, const struct timespec *left,
		     const sigset_t *mask)
{
	int64_t ms = -1;
	int count = aw_libc()->epoll_pwait2 ? aw_libc()->epoll_pwait2(epfd, events, max, left, mask)
					    : -1;

	if (count >= 0 || (aw_libc()->epoll_pwait2 && errno != ENOSYS && errno != EPERM))
		return count;
	if (left)
		ms = (int64_t)left->tv_sec * 1000 + (left->tv_nsec + 999999) / 1000000;
	return aw_libc()->epoll_pwait(epfd, events, max, ms > INT_MAX ? INT_MAX : (int)ms, mask);
}

/* Whoever has registered before the connection began is in a set that a wait may have to look at. */
static int wait_until(int epfd, struct epoll_event *events, int max,
		      const struct aw_deadline *deadline, const sigset_t *mask)
{
	struct timespec left;
	int count, kept;

	do {
		count = wait_once(epfd, events, max, aw_preamble_left(deadline, &left), mask);
		if (count >= 0)
			aw_preamble_settle();
		kept = count > 0 ? filter(epfd, events, count) : count;
	} while (!kept && (count > 0 || !aw_deadline_is_over(deadline)));
	return kept;
}

static int wait_undecided(int epfd, struct epoll_event *events, int max,
			  const struct timespec *timeout, const sigset_t *mask)
{
	struct aw_deadline deadline = aw_deadline_after(timeout);

	return wait_until(epfd, events, max, &deadline, mask);
}

static int wait_undecided_ms(int epfd, struct epoll_event *events, int max, int timeout_ms,
			     const sigset_t *mask)
{
	struct timespec timeout = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };

	return wait_undecided(epfd, events, max, timeout_ms < 0 ? NULL : &timeout, mask);
}

/* A wait that began while nothing was undecided, and that another thread's connection may have joined. */
static int joined(int epfd, struct epoll_event *events, int max, int count,
		  const struct aw_deadline *deadline, const sigset_t *mask)
{
	int kept;

	if (count <= 0 || !aw_fdtab_any_undecided())
		return count;
	kept = filter(epfd, events, count);
	return kept ? kept : wait_until(epfd, events, max, deadline, mask);
}

AW_WRAPPER int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms)
{
	struct aw_deadline deadline;
	int count;

	aw_framed_follow();
	if (aw_fdtab_any_undecided())
		return wait_undecided_ms(epfd, events, max, timeout_ms, NULL);
	if (aw_sandbox_is_on())
		return aw_libc()->epoll_wait(epfd, events, max, timeout_ms);
	deadline = aw_deadline_after_ms(timeout_ms);
	count = aw_libc()->epoll_wait(epfd, events, max, timeout_ms);
	return joined(epfd, events, max, count, &deadline, NULL);
}

AW_WRAPPER int epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout_ms,
			   const sigset_t *mask)
{
	struct aw_deadline deadline;
	int count;

	aw_framed_follow();
	if (aw_fdtab_any_undecided())
		return wait_undecided_ms(epfd, events, max, timeout_ms, mask);
	if (aw_sandbox_is_on())
		return aw_libc()->epoll_pwait(epfd, events, max, timeout_ms, mask);
	deadline = aw_deadline_after_ms(timeout_ms);
	count = aw_libc()->epoll_pwait(epfd, events, max, timeout_ms, mask);
	return joined(epfd, events, max, count, &deadline, mask);
}

AW_WRAPPER int epoll_pwait2(int epfd, struct epoll_event *events, int max,
			    const struct timespec *timeout, const sigset_t *mask)
{
	struct aw_deadline deadline;
	int count;

	aw_framed_follow();
	if (aw_fdtab_any_undecided())
		return wait_undecided(epfd, events, max, timeout, mask);
	if (aw_sandbox_is_on())
		return aw_libc()->epoll_pwait2(epfd, events, max, timeout, mask);
	deadline = aw_deadline_after(timeout);
	count = aw_libc()->epoll_pwait2(epfd, events, max, timeout, mask);
	return joined(epfd, events, max, count, &deadline, mask);
}
