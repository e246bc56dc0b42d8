// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Polls, makes the first I/O on undecided fds that are ready, and polls again.
#include "xsock/preload/wait.h"

#include <errno.h>

#include "base/clock.h"
#include "xsock/base/left.h"
#include "xsock/base/libc.h"
#include "xsock/framed/parts.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/overdue.h"
#include "xsock/process/memory.h"

#define NS 1000000000

struct aw_deadline aw_deadline_after(const struct timespec *timeout)
{
	struct aw_deadline deadline = { .at_ns = -1 };
	int64_t seconds = timeout ? timeout->tv_sec : 0;

	if (timeout && !seconds && !timeout->tv_nsec)
		deadline.at_ns = 0; /* the deadline is over at any time of the clock */
	else if (timeout && seconds < INT64_MAX / NS / 2)
		deadline.at_ns = aw_now_ns() + seconds * NS + timeout->tv_nsec;
	return deadline;
}

struct aw_deadline aw_deadline_after_ms(int timeout_ms)
{
	struct timespec timeout = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };

	return aw_deadline_after(timeout_ms < 0 ? NULL : &timeout);
}

const struct timespec *aw_deadline_left(const struct aw_deadline *deadline, struct timespec *left)
{
	int64_t ns;

	if (deadline->at_ns < 0)
		return NULL;
	ns = deadline->at_ns - aw_now_ns();
	if (ns < 0)
		ns = 0;
	left->tv_sec = ns / NS;
	left->tv_nsec = ns % NS;
	return left;
}

bool aw_deadline_is_over(const struct aw_deadline *deadline)
{
	return deadline->at_ns >= 0 && aw_now_ns() >= deadline->at_ns;
}

/*
 * The program's fds, with the events that the start-up needs, and the sockets of those that are
 * undecided.
 */
struct wide_poll {
	struct pollfd *fds;
	struct aw_sock **socks;
	nfds_t count;
	size_t bytes;
};

/*
 * Fills wide: makes the first I/O on undecided fds, and polls those that stay undecided for their
 * start-up's event. Returns whether there are any.
 */
static bool fill_wide(struct wide_poll *wide, const struct pollfd *fds)
{
	bool any = false;

	for (nfds_t i = 0; i < wide->count; i++) {
		wide->fds[i] = fds[i];
		wide->socks[i] = NULL;
		if (fds[i].fd < 0 || !aw_fdtab_is_undecided(fds[i].fd))
			continue;
		aw_first_io_make(fds[i].fd, AW_FIRST_POLL, true);
		wide->socks[i] = aw_first_io_begin_sleep(fds[i].fd);
		if (!wide->socks[i])
			continue;
		any = true;
		/* A socket that connects is writable when it is connected; one whose Request is due may be so all the time. */
		if (aw_fdtab_state(fds[i].fd) == AW_FD_CONNECTING)
			wide->fds[i].events |= POLLOUT;
		else
			wide->fds[i].events = POLLIN;
	}
	return any;
}

static void end_sleeps(struct wide_poll *wide)
{
	for (nfds_t i = 0; i < wide->count; i++) {
		if (wide->socks[i])
			aw_first_io_end_sleep(wide->socks[i]);
	}
}

/* Runs when the thread is cancelled, or a signal handler has left the call by siglongjmp. */
static void abandon_wait(void *arg)
{
	struct wide_poll *wide = arg;

	end_sleeps(wide);
	aw_memory_unmap(wide->fds, wide->bytes);
}

static int poll_until(struct wide_poll *wide, const struct aw_deadline *deadline,
		      const sigset_t *mask)
{
	struct _pthread_cleanup_buffer left_for_good;
	struct timespec left;
	int ready;

	aw_left_push(&left_for_good, abandon_wait, wide);
	ready = aw_libc()->ppoll(wide->fds, wide->count, aw_overdue_left(deadline, &left), mask);
	aw_left_pop(&left_for_good, 0);
	return ready;
}

/*
 * Makes the first I/O on the undecided fds that are ready. Returns whether this or another thread
 * has decided any.
 */
static bool settle_ready(const struct wide_poll *wide)
{
	bool changed = false;

	for (nfds_t i = 0; i < wide->count; i++) {
		int fd = wide->fds[i].fd;

		if (!wide->socks[i] || !wide->fds[i].revents)
			continue;
		if (aw_fdtab_is_undecided(fd))
			aw_first_io_make(fd, AW_FIRST_POLL, true);
		changed |= !aw_fdtab_is_undecided(fd);
	}
	return changed;
}

/* Copies the events that the program has asked for. Returns the number of fds that have any. */
static int copy_events(struct pollfd *fds, const struct wide_poll *wide)
{
	int ready = 0;

	for (nfds_t i = 0; i < wide->count; i++) {
		short visible = fds[i].events | POLLERR | POLLHUP | POLLNVAL;

		if (wide->socks[i] && aw_first_io_hides(fds[i].fd))
			visible = POLLNVAL;
		fds[i].revents = wide->fds[i].revents & visible;
		ready += fds[i].revents != 0;
	}
	return ready;
}

int aw_wait_poll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		 const sigset_t *mask)
{
	struct aw_deadline deadline = aw_deadline_after(timeout);
	struct wide_poll wide = { .count = count };
	int ready;

	wide.bytes = (count ? count : 1) * (sizeof(*wide.fds) + sizeof(*wide.socks));
	wide.fds = aw_memory_map(wide.bytes);
	if (!wide.fds)
		return aw_fail_with(ENOMEM);
	wide.socks = (struct aw_sock **)(wide.fds + count);
	do {
		bool any;

		aw_overdue_settle();
		any = fill_wide(&wide, fds);
		ready = poll_until(&wide, &deadline, mask);
		if (any)
			end_sleeps(&wide);
		if (ready > 0 && any && settle_ready(&wide))
			ready = -EAGAIN;
		else if (ready >= 0) {
			bool over = ready == 0 && aw_deadline_is_over(&deadline);

			ready = copy_events(fds, &wide);
			ready -= aw_parts_hide_poll(fds, count);
			if (!ready && !over)
				ready = -EAGAIN;
		}
	} while (ready == -EAGAIN);
	aw_memory_unmap(wide.fds, wide.bytes);
	return ready;
}
