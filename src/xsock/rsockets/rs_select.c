// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rselect, by rpoll.
#include <rdma/rsocket.h>
#include <sys/select.h>

#include "xsock/rsockets/rs_poll.h"

#define NS_PER_S 1000000000
#define NS_PER_US 1000

/* The bits of poll(2) that each set stands for, as in select(2). */
#define READABLE (POLLIN | POLLHUP | POLLERR)
#define WRITABLE (POLLOUT | POLLERR)
#define EXCEPTIONAL POLLPRI

struct rs_select_sets {
	fd_set *read, *write, *except;
};

static bool is_in(const fd_set *set, int fd)
{
	return set && FD_ISSET(fd, set);
}

static nfds_t fds_of(const struct rs_select_sets *sets, int count, struct pollfd *fds)
{
	nfds_t used = 0;

	for (int fd = 0; fd < count; fd++) {
		short events = is_in(sets->read, fd) ? POLLIN : 0;

		if (is_in(sets->write, fd))
			events |= POLLOUT;
		if (is_in(sets->except, fd))
			events |= POLLPRI;
		if (events)
			fds[used++] = (struct pollfd){ .fd = fd, .events = events };
	}
	return used;
}

/* Keeps fd in the set if holds. Returns 1 if fd is in the set, or 0. */
static int keep_fd(fd_set *set, int fd, bool holds)
{
	if (!is_in(set, fd))
		return 0;
	if (!holds)
		FD_CLR(fd, set);
	return holds;
}

static int fill_sets(const struct rs_select_sets *sets, const struct pollfd *fds, nfds_t used)
{
	int count = 0;

	for (nfds_t i = 0; i < used; i++)
		if (fds[i].revents & POLLNVAL)
			return -EBADF;
	for (nfds_t i = 0; i < used; i++) {
		count += keep_fd(sets->read, fds[i].fd, fds[i].revents & READABLE);
		count += keep_fd(sets->write, fds[i].fd, fds[i].revents & WRITABLE);
		count += keep_fd(sets->except, fds[i].fd, fds[i].revents & EXCEPTIONAL);
	}
	return count;
}

static int select_in(const struct rs_select_sets *sets, int count, const struct timeval *timeout)
{
	struct pollfd fds[FD_SETSIZE];
	int64_t timeout_ns = -1;
	nfds_t used;
	int got;

	if (count < 0 || count > FD_SETSIZE)
		return -EINVAL;
	if (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0))
		return -EINVAL;
	if (timeout)
		timeout_ns =
			(int64_t)timeout->tv_sec * NS_PER_S + (int64_t)timeout->tv_usec * NS_PER_US;
	used = fds_of(sets, count, fds);
	got = aw_rs_poll(fds, used, timeout_ns);
	return got < 0 ? got : fill_sets(sets, fds, used);
}

int rselect(int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds, struct timeval *timeout)
{
	struct rs_select_sets sets = { readfds, writefds, exceptfds };

	return (int)aw_rs_result(select_in(&sets, nfds, timeout));
}
