// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Keeps the registrations, one record for each pair of a set and an fd.
#include "xsock/preload/watch.h"

#include <errno.h>
#include <stdlib.h>

#include "xsock/preload/libc.h"

static struct aw_watch **find(struct aw_sock *sock, int epfd, int fd)
{
	struct aw_watch **at = &sock->watches;

	while (*at && ((*at)->epfd != epfd || (*at)->fd != fd))
		at = &(*at)->next;
	return at;
}

static void discard(struct aw_watch **at)
{
	struct aw_watch *watch = *at;

	*at = watch->next;
	aw_pool_give(&aw_fdtab_watches, watch);
}

void aw_watch_note(struct aw_sock *sock, int epfd, int op, int fd, const struct epoll_event *event,
		   bool wide)
{
	struct aw_watch **at = find(sock, epfd, fd);

	if (op == EPOLL_CTL_DEL) {
		if (*at)
			discard(at);
		return;
	}
	if (!*at)
		*at = aw_pool_take(&aw_fdtab_watches);
	if (!*at)
		return;
	(*at)->epfd = epfd;
	(*at)->fd = fd;
	(*at)->event = *event;
	(*at)->told = false;
	(*at)->wide = wide;
}

/* Takes fd out of its sets; what is no longer registered there is forgotten. */
static void leave_sets(struct aw_sock *sock, int fd)
{
	struct aw_watch **at = &sock->watches;

	while (*at) {
		struct aw_watch *watch = *at;

		if (watch->fd == fd) {
			if (watch->told)
				watch->event.events = EPOLLONESHOT;
			if (aw_libc()->epoll_ctl(watch->epfd, EPOLL_CTL_DEL, fd, NULL) != 0) {
				discard(at);
				continue;
			}
		}
		at = &watch->next;
	}
}

static void join_sets(struct aw_sock *sock, int fd)
{
	for (struct aw_watch *watch = sock->watches; watch; watch = watch->next) {
		if (watch->fd != fd)
			continue;
		watch->wide = false;
		aw_libc()->epoll_ctl(watch->epfd, EPOLL_CTL_ADD, fd, &watch->event);
	}
}

int aw_watch_swap(struct aw_sock *sock, int fd, int new_fd)
{
	int flags = aw_libc()->fcntl(fd, F_GETFD);
	int err = 0;

	leave_sets(sock, fd);
	if (aw_libc()->dup3(new_fd, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0) < 0)
		err = errno;
	join_sets(sock, fd);
	return err;
}

void aw_watch_widen(struct aw_sock *sock)
{
	for (struct aw_watch *watch = sock->watches; watch; watch = watch->next) {
		struct epoll_event event = watch->event;

		event.events |= EPOLLOUT;
		if (watch->event.events & EPOLLOUT)
			continue;
		watch->wide = true;
		aw_libc()->epoll_ctl(watch->epfd, EPOLL_CTL_MOD, watch->fd, &event);
	}
}

void aw_watch_narrow(struct aw_sock *sock)
{
	for (struct aw_watch *watch = sock->watches; watch; watch = watch->next) {
		if (!watch->wide)
			continue;
		watch->wide = false;
		aw_libc()->epoll_ctl(watch->epfd, EPOLL_CTL_MOD, watch->fd, &watch->event);
	}
}

struct wanted {
	int epfd;
	epoll_data_t data;
	struct aw_sock *sock;
	struct aw_watch *watch;
};

static void look(struct aw_sock *sock, int fd, void *arg)
{
	struct wanted *wanted = arg;

	(void)fd;
	if (wanted->watch || sock->state < AW_FD_CONNECTING)
		return;
	for (struct aw_watch *watch = sock->watches; watch; watch = watch->next) {
		if (watch->epfd == wanted->epfd && watch->event.data.u64 == wanted->data.u64) {
			wanted->watch = watch;
			wanted->sock = sock;
			return;
		}
	}
}

struct aw_watch *aw_watch_find(int epfd, epoll_data_t data, struct aw_sock **sock)
{
	struct wanted wanted = { .epfd = epfd, .data = data };

	aw_fdtab_each(look, &wanted);
	if (wanted.watch)
		*sock = wanted.sock;
	return wanted.watch;
}
