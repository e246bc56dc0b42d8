// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Turns the sets into poll(2)'s bits and back.
#include "xsock/base/sets.h"

#include <errno.h>

static bool is_in(const fd_set *set, int fd)
{
	return set && FD_ISSET(fd, set);
}

static short events_of(const struct aw_select_sets *sets, int fd)
{
	return (short)((is_in(sets->in, fd) ? POLLIN : 0) | (is_in(sets->out, fd) ? POLLOUT : 0) |
		       (is_in(sets->except, fd) ? POLLPRI : 0));
}

bool aw_sets_have(const struct aw_select_sets *sets, int fd)
{
	return events_of(sets, fd);
}

nfds_t aw_sets_to_poll(const struct aw_select_sets *sets, int limit, struct pollfd *fds)
{
	nfds_t count = 0;

	for (int fd = 0; fd < limit; fd++)
		if (aw_sets_have(sets, fd))
			fds[count++] = (struct pollfd){ .fd = fd, .events = events_of(sets, fd) };
	return count;
}

/* Keeps fd in the set if it was there and is ready. Returns the number of fds kept, 0 or 1. */
static int keep_ready(fd_set *set, const struct pollfd *fd, short ready)
{
	if (!is_in(set, fd->fd))
		return 0;
	if (fd->revents & ready)
		return 1;
	FD_CLR(fd->fd, set);
	return 0;
}

int aw_sets_from_poll(const struct aw_select_sets *sets, const struct pollfd *fds, nfds_t count)
{
	int ready = 0;

	for (nfds_t i = 0; i < count; i++)
		if (fds[i].revents & POLLNVAL)
			return -EBADF;
	for (nfds_t i = 0; i < count; i++) {
		ready += keep_ready(sets->in, &fds[i], POLLIN | POLLHUP | POLLERR);
		ready += keep_ready(sets->out, &fds[i], POLLOUT | POLLERR);
		ready += keep_ready(sets->except, &fds[i], POLLPRI);
	}
	return ready;
}
