// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: epoll. The library notes the registrations of undecided sockets, and keeps events that
// are due to the start-up alone from the program.
#include <errno.h>
#include <limits.h>

#include "xsock/base/libc.h"
#include "xsock/framed/bridge.h"
#include "xsock/pair/attend.h"
#include "xsock/pair/hangup.h"
#include "xsock/preload/extended.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/overdue.h"
#include "xsock/preload/wait.h"
#include "xsock/process/mode.h"
#include "xsock/process/registration.h"
#include "xsock/process/sandbox.h"

/* Calls libc's epoll_ctl and notes the registration. */
static int control_fd(int epfd, int op, int fd, struct epoll_event *event)
{
	struct epoll_event needed;
	struct aw_sock *sock;
	int result;
	bool widened;

	aw_fdtab_lock();
	sock = aw_fdtab_get_started(fd);
	widened = false;
	/*
	 * The kernel reports the events that the socket's start-up needs. While it connects these are also POLLOUT, by which the library
	 * learns that the connect is over; while a Request is due they are POLLIN, and not that the program could write.
	 */
	if (event && op != EPOLL_CTL_DEL && sock) {
		needed = *event;
		if (sock->state == AW_FD_CONNECTING)
			needed.events |= EPOLLOUT;
		if (sock->state == AW_FD_PENDING && !sock->error) {
			needed.events &= ~(uint32_t)(EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND);
			needed.events |= EPOLLIN;
		}
		widened = needed.events != event->events;
	}
	result = aw_libc()->epoll_ctl(epfd, op, fd, widened ? &needed : event);
	if (result == 0 && sock && sock->state != AW_FD_BRIDGED && sock->state != AW_FD_FRAMED &&
	    sock->state != AW_FD_LISTENER)
		aw_registration_note(sock, epfd, op, fd, event, widened);
	aw_fdtab_unlock();
	return result;
}

/*
 * Calls epoll_ctl for a candidate. A connect in iWARP mode would have made it CONNECTING: if it has
 * a peer, it was connected as plain TCP and leaves the table. Else the table notes its registrations.
 */
static int control_candidate(int epfd, int op, int fd, struct epoll_event *event)
{
	union aw_address remote;
	socklen_t len = sizeof(remote);
	struct aw_sock *sock = NULL;
	int err = errno;
	bool is_plain = aw_libc()->getpeername(fd, (struct sockaddr *)&remote, &len) == 0;

	if (is_plain || aw_mode_may_connect()) {
		aw_fdtab_lock();
		sock = aw_fdtab_get_or_add(fd);
		if (is_plain && sock && sock->state == AW_FD_CANDIDATE)
			aw_fdtab_drop(sock);
		aw_fdtab_unlock();
	}
	/* gRPC reads the errno of connect, EINPROGRESS, after an epoll_ctl that succeeds. */
	errno = err;
	return control_fd(epfd, op, fd, event);
}

AW_WRAPPER int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	aw_fdtab_await_left(fd);
	if (event && op != EPOLL_CTL_DEL && aw_fdtab_state(fd) != AW_FD_NONE)
		aw_hangup_note(epfd, fd, event->data);
	aw_attend(fd);
	switch (aw_fdtab_state(fd)) {
	case AW_FD_BRIDGED:
		aw_extended_watch(fd);
		return aw_libc()->epoll_ctl(epfd, op, fd, event);
	case AW_FD_NONE:
	case AW_FD_LISTENER:
	case AW_FD_FRAMED:
		return aw_libc()->epoll_ctl(epfd, op, fd, event);
	case AW_FD_INTERNAL:
		return aw_fail_with(EBADF);
	case AW_FD_CANDIDATE:
		return control_candidate(epfd, op, fd, event);
	case AW_FD_CONNECTING:
	case AW_FD_PENDING:
		aw_first_io_make(fd, AW_FIRST_POLL, true);
		return control_fd(epfd, op, fd, event);
	case AW_FD_STARTING:
		return control_fd(epfd, op, fd, event);
	case AW_FD_LEAVING:
		break;
	}
	return aw_libc()->epoll_ctl(epfd, op, fd, event);
}

/*
 * Returns whether the program sees the event, of which this is what it has asked for, and notes that
 * a one-shot one is delivered. A one-shot registration whose event the program does not see is armed
 * again. If the swap came first the program does not see the event: the new registration reports
 * what there is.
 */
static bool take_event(int epfd, const struct epoll_event *event, int fd)
{
	bool visible = event->events;
	struct aw_registration *reg;
	struct aw_sock *sock;

	aw_fdtab_lock();
	reg = aw_registration_find(epfd, event->data, &sock);
	if (reg && visible)
		reg->delivered = reg->event.events & EPOLLONESHOT;
	else if (reg && reg->event.events & EPOLLONESHOT && !reg->delivered)
		aw_libc()->epoll_ctl(epfd, EPOLL_CTL_MOD, reg->fd, &reg->event);
	else if (!reg)
		visible = visible && aw_fdtab_state(fd) != AW_FD_BRIDGED;
	aw_fdtab_unlock();
	return visible;
}

/*
 * Makes the first I/O on the event's fd, if that is undecided. Returns whether the program sees the
 * event, and removes from it what the program has not asked for.
 */
static bool is_for_program(int epfd, struct epoll_event *event)
{
	struct epoll_event wanted = { .data = event->data };
	struct aw_registration *reg;
	struct aw_sock *sock;
	int fd = -1;

	aw_fdtab_lock();
	reg = aw_registration_find(epfd, event->data, &sock);
	if (reg) {
		fd = reg->fd;
		wanted.events = reg->event.events;
	}
	aw_fdtab_unlock();
	if (fd < 0)
		return true;
	aw_first_io_make(fd, AW_FIRST_POLL, true);

	/*
	 * The event of an fd that has become framed may have been due to the MPA Request alone: polls fd for what is there now. A
	 * one-shot registration whose event the program does not see is armed again.
	 */
	if (aw_fdtab_state(fd) == AW_FD_FRAMED) {
		event->events = (uint16_t)aw_first_io_poll(fd, (short)(wanted.events & 0xffff), 0);
		if (!event->events && wanted.events & EPOLLONESHOT)
			aw_libc()->epoll_ctl(epfd, EPOLL_CTL_MOD, fd, &wanted);
		return event->events;
	}
	event->events &= aw_first_io_hides(fd) ? 0 : wanted.events | EPOLLERR | EPOLLHUP;
	return take_event(epfd, event, fd);
}

static int filter_events(int epfd, struct epoll_event *events, int count)
{
	int kept = 0;

	if (!aw_fdtab_any_undecided())
		return count;
	for (int i = 0; i < count; i++) {
		struct epoll_event event = events[i];

		if (is_for_program(epfd, &event))
			events[kept++] = event;
	}
	return kept;
}

/*
 * Waits in the set once, by epoll_pwait, in milliseconds, if the kernel (before 5.11) or a sandbox
 * has no epoll_pwait2.
 */
static int wait_once(int epfd, struct epoll_event *events, int max, const struct timespec *left,
		     const sigset_t *mask)
{
	static _Atomic bool lacks_pwait2;
	int64_t ms = -1;

	if (aw_libc()->epoll_pwait2 && !atomic_load_explicit(&lacks_pwait2, memory_order_relaxed)) {
		int count = aw_libc()->epoll_pwait2(epfd, events, max, left, mask);

		if (count >= 0 || (errno != ENOSYS && errno != EPERM))
			return count;
		atomic_store_explicit(&lacks_pwait2, true, memory_order_relaxed);
	}
	if (left)
		ms = (int64_t)left->tv_sec * 1000 + (left->tv_nsec + 999999) / 1000000;
	return aw_libc()->epoll_pwait(epfd, events, max, ms > INT_MAX ? INT_MAX : (int)ms, mask);
}

/*
 * Waits until the deadline for an event that the program sees. Any set may have undecided fds in
 * it, because a program may register an fd before it connects.
 */
static int wait_until(int epfd, struct epoll_event *events, int max,
		      const struct aw_deadline *deadline, const sigset_t *mask)
{
	struct timespec left;
	int count, kept;

	do {
		count = wait_once(epfd, events, max, aw_overdue_left(deadline, &left), mask);
		if (count >= 0)
			aw_overdue_settle();
		kept = count > 0 ? filter_events(epfd, events, count) : count;
	} while (!kept && (count > 0 || !aw_deadline_is_over(deadline)));
	return kept;
}

/*
 * Filters the events of a wait that began while no socket was undecided: another thread may have
 * added an undecided one meanwhile. If no event is left, waits on.
 */
static int filter_late(int epfd, struct epoll_event *events, int max, int count,
		       const struct aw_deadline *deadline, const sigset_t *mask)
{
	int kept;

	if (count <= 0 || !aw_fdtab_any_undecided())
		return count;
	kept = filter_events(epfd, events, count);
	return kept ? kept : wait_until(epfd, events, max, deadline, mask);
}

/* mask NULL with masks false: epoll_wait, which a sandbox may allow alone. */
static int wait_ms(int epfd, struct epoll_event *events, int max, int timeout_ms,
		   const sigset_t *mask, bool masks)
{
	bool undecided, sandboxed = aw_sandbox_is_on();
	struct aw_deadline deadline;
	int count;

	aw_framed_follow();
	undecided = aw_fdtab_any_undecided() || aw_overdue_may_be();
	if (undecided || !sandboxed)
		deadline = aw_deadline_after_ms(timeout_ms);
	if (undecided)
		return wait_until(epfd, events, max, &deadline, mask);
	count = masks ? aw_libc()->epoll_pwait(epfd, events, max, timeout_ms, mask)
		      : aw_libc()->epoll_wait(epfd, events, max, timeout_ms);
	return sandboxed ? count : filter_late(epfd, events, max, count, &deadline, mask);
}

AW_WRAPPER int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout_ms)
{
	int count = wait_ms(epfd, events, max, timeout_ms, NULL, false);

	return aw_hangup_hide_epoll(count, epfd, events);
}

AW_WRAPPER int epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout_ms,
			   const sigset_t *mask)
{
	int count = wait_ms(epfd, events, max, timeout_ms, mask, true);

	return aw_hangup_hide_epoll(count, epfd, events);
}

AW_WRAPPER int epoll_pwait2(int epfd, struct epoll_event *events, int max,
			    const struct timespec *timeout, const sigset_t *mask)
{
	bool undecided, sandboxed = aw_sandbox_is_on();
	struct aw_deadline deadline;
	int count;

	aw_framed_follow();
	undecided = aw_fdtab_any_undecided() || aw_overdue_may_be();
	if (undecided || !sandboxed)
		deadline = aw_deadline_after(timeout);
	if (undecided)
		count = wait_until(epfd, events, max, &deadline, mask);
	else
		count = aw_libc()->epoll_pwait2(epfd, events, max, timeout, mask);
	if (!undecided && !sandboxed)
		count = filter_late(epfd, events, max, count, &deadline, mask);
	return aw_hangup_hide_epoll(count, epfd, events);
}
