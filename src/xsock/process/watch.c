// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Keeps the registrations, one record for each pair of a set and an fd.
#include "xsock/process/watch.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xsock/base/libc.h"

#define SET "anon_inode:[eventpoll]"

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

static bool is_one_of(const struct aw_sock *sock, struct aw_sock *const *socks, int count)
{
	for (int i = 0; i < count; i++)
		if (socks[i] == sock)
			return true;
	return false;
}

struct wanted_socks {
	struct aw_sock *const *socks;
	int count;
};

/* A line of /proc/self/fdinfo of a set. */
static void read_line(const struct wanted_socks *wanted, int epfd, const char *line)
{
	struct epoll_event event = { 0 };
	unsigned long long data, ino;
	struct aw_sock *sock;
	int fd, at = 0;

	if (sscanf(line, "tfd: %d events: %x data: %llx pos:%*d ino:%llx%n", &fd, &event.events,
		   &data, &ino, &at) != 4 ||
	    !at)
		return;
	event.data.u64 = data;
	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	if (sock && sock->ino == ino && is_one_of(sock, wanted->socks, wanted->count))
		aw_watch_note(sock, epfd, EPOLL_CTL_ADD, fd, &event, false);
	aw_fdtab_unlock();
}

static void read_set(const struct wanted_socks *wanted, int epfd)
{
	char path[48], line[160];
	FILE *info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", epfd);
	info = fopen(path, "re");
	while (info && fgets(line, sizeof(line), info))
		read_line(wanted, epfd, line);
	if (info)
		(void)aw_libc()->fclose(info);
}

void aw_watch_read(struct aw_sock *const *socks, int count)
{
	const struct wanted_socks wanted = { socks, count };
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	char target[32];

	while (dir && (entry = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target));

		if (len == sizeof(SET) - 1 && memcmp(target, SET, sizeof(SET) - 1) == 0)
			read_set(&wanted, atoi(entry->d_name));
	}
	if (dir)
		closedir(dir);
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
