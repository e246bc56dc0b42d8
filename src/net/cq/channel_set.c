// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The set of those that sleep is made when a thread first does, since most channels never need one (net/cq/sets.h).
#include "net/cq/channel_set.h"

#include "net/base/fork.h"
#include "net/cq/sets.h"
#include "ring/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>

bool aw_channel_has_set(const struct aw_channel *ch)
{
	return ch->epfd >= 0 && ch->generation == aw_fork_generation();
}

bool aw_channel_open_set(struct aw_channel *ch)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = AW_EVENT_FD_KEY };

	if (ch->epfd >= 0)
		return aw_channel_has_set(ch);
	aw_lock(&ch->lock);
	if (ch->epfd < 0) {
		int epfd = aw_sets_open(AW_SETS_CHANNEL, false);

		if (epfd >= 0 && epoll_ctl(epfd, EPOLL_CTL_ADD, ch->fd, &ev) != 0) {
			aw_sets_close(AW_SETS_CHANNEL, epfd);
			epfd = -1;
		}
		ch->generation = aw_fork_generation();
		ch->epfd = epfd;
	}
	aw_unlock(&ch->lock);
	return aw_channel_has_set(ch);
}

bool aw_channel_has_waiter(const struct aw_channel *ch)
{
	return atomic_load_explicit(&ch->waiters, memory_order_relaxed) > 0 &&
	       ch->generation == aw_fork_generation();
}

bool aw_channel_takes_sockets(const struct aw_channel *ch)
{
	if (ch->fd == ch->event_fd || ch->generation != aw_fork_generation())
		return false;
	int flags = fcntl(ch->fd, F_GETFL);

	return flags >= 0 && flags & O_NONBLOCK;
}

int aw_channel_watch(int set, int fd, uint32_t handle, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.u64 = handle };

	if (events == 0) {
		epoll_ctl(set, EPOLL_CTL_DEL, fd, &ev);
		return 0;
	}
	if (epoll_ctl(set, EPOLL_CTL_MOD, fd, &ev) == 0)
		return 0;
	return epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : errno;
}
