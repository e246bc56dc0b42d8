// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Keeps the last registration of each fd, without a lock: an fd that is registered in two sets keeps the hang-up in the first.
#include "xsock/pair/hangup.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdatomic.h>

#include "xsock/base/libc.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/sandbox.h"

static struct registered {
	_Atomic(uint64_t) data;
	_Atomic(int) set; /* the set's fd plus one; 0: none */
} registered[AW_FDTAB_MAX];
static _Atomic(int) registered_end; /* one above the highest fd that was registered */

void aw_hangup_note(int epfd, int fd, epoll_data_t data)
{
	int end = atomic_load_explicit(&registered_end, memory_order_relaxed);

	if ((unsigned)fd >= AW_FDTAB_MAX)
		return;
	atomic_store_explicit(&registered[fd].data, data.u64, memory_order_relaxed);
	atomic_store_explicit(&registered[fd].set, epfd + 1, memory_order_relaxed);
	while (end <= fd && !atomic_compare_exchange_weak(&registered_end, &end, fd + 1))
		;
}

static bool is_registered(int fd, int epfd, epoll_data_t data)
{
	return aw_fdtab_state(fd) == AW_FD_BRIDGED &&
	       atomic_load_explicit(&registered[fd].set, memory_order_relaxed) == epfd + 1 &&
	       atomic_load_explicit(&registered[fd].data, memory_order_relaxed) == data.u64;
}

/* Returns the pair that is registered so, or -1. Most programs' data are the fd; others' are looked for. */
static int find_registered(int epfd, epoll_data_t data)
{
	int end = atomic_load_explicit(&registered_end, memory_order_relaxed);

	if ((unsigned)data.fd < AW_FDTAB_MAX && is_registered(data.fd, epfd, data))
		return data.fd;
	for (int fd = 0; fd < end; fd++)
		if (is_registered(fd, epfd, data))
			return fd;
	return -1;
}

/* Returns whether fd is a pair of which one direction has ended, as TCP sees it. */
static bool is_half_closed(int fd)
{
	const struct aw_sock *sock;
	uint8_t state = TCP_CLOSE;
	socklen_t len = sizeof(state);
	int beside;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	beside = sock && sock->is_pair && !sock->shut ? aw_fdtab_beside(sock) : 0;
	if (beside && aw_libc()->getsockopt(beside, IPPROTO_TCP, TCP_INFO, &state, &len) != 0)
		state = TCP_CLOSE;
	aw_fdtab_unlock();
	return state == TCP_CLOSE_WAIT || state == TCP_ESTABLISHED;
}

static bool are_none(int ready)
{
	return ready <= 0 || !atomic_load_explicit(&aw_fdtab_bridged, memory_order_relaxed) ||
	       aw_sandbox_is_on();
}

/* EPOLLIN and the like have the values of POLLIN and the like. */
static bool is_candidate(uint32_t events)
{
	return events & EPOLLHUP && events & (EPOLLIN | EPOLLRDNORM | EPOLLRDHUP);
}

int aw_hangup_hide_poll(int ready, struct pollfd *fds, nfds_t count)
{
	int saved = errno;

	if (are_none(ready))
		return ready;
	for (nfds_t i = 0; i < count; i++)
		if (is_candidate((uint16_t)fds[i].revents) &&
		    aw_fdtab_state(fds[i].fd) == AW_FD_BRIDGED && is_half_closed(fds[i].fd))
			fds[i].revents &= ~POLLHUP;
	errno = saved;
	return ready;
}

int aw_hangup_hide_epoll(int ready, int epfd, struct epoll_event *events)
{
	int saved = errno;

	if (are_none(ready))
		return ready;
	for (int i = 0; i < ready; i++) {
		int fd = is_candidate(events[i].events) ? find_registered(epfd, events[i].data)
							: -1;

		if (fd >= 0 && is_half_closed(fd))
			events[i].events &= ~(uint32_t)EPOLLHUP;
	}
	errno = saved;
	return ready;
}
