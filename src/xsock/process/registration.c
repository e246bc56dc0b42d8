// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Keeps one struct aw_registration for each pair of a set and an fd.
#include "xsock/process/registration.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "xsock/base/libc.h"

#define SET "anon_inode:[eventpoll]"

static void free_registration(struct aw_registration **at)
{
	struct aw_registration *reg = *at;

	*at = reg->next;
	aw_pool_free(&aw_fdtab_registrations, reg);
}

void aw_registration_note(struct aw_sock *sock, int epfd, int op, int fd,
			  const struct epoll_event *event, bool widened)
{
	struct aw_registration **at = &sock->registrations;

	while (*at && ((*at)->epfd != epfd || (*at)->fd != fd))
		at = &(*at)->next;
	if (op == EPOLL_CTL_DEL) {
		if (*at)
			free_registration(at);
		return;
	}
	if (!*at)
		*at = aw_pool_alloc(&aw_fdtab_registrations);
	if (!*at)
		return;
	(*at)->epfd = epfd;
	(*at)->fd = fd;
	(*at)->event = *event;
	(*at)->delivered = false;
	(*at)->widened = widened;
}

struct socket_list {
	struct aw_sock *const *socks;
	int count;
};

/* Reads one line of a set's file in /proc/self/fdinfo. */
static void read_line(const struct socket_list *wanted, int epfd, const char *line)
{
	unsigned long long data, ino;
	struct epoll_event event;
	struct aw_sock *sock;
	unsigned int events;
	int fd, at = 0;

	if (sscanf(line, "tfd: %d events: %x data: %llx pos:%*d ino:%llx%n", &fd, &events, &data,
		   &ino, &at) != 4 ||
	    !at)
		return;
	event = (struct epoll_event){ .events = events, .data.u64 = data };
	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	for (int i = 0; sock && sock->ino == ino && i < wanted->count; i++)
		if (wanted->socks[i] == sock)
			aw_registration_note(sock, epfd, EPOLL_CTL_ADD, fd, &event, false);
	aw_fdtab_unlock();
}

void aw_registration_read(struct aw_sock *const *socks, int count)
{
	const struct socket_list wanted = { socks, count };
	DIR *dir = opendir("/proc/self/fd");
	char target[32], path[48], line[160];
	struct dirent *entry;
	FILE *info;

	while (dir && (entry = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target));
		int epfd = atoi(entry->d_name);

		if (len != sizeof(SET) - 1 || memcmp(target, SET, sizeof(SET) - 1) != 0)
			continue;
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", epfd);
		info = fopen(path, "re");
		while (info && fgets(line, sizeof(line), info))
			read_line(&wanted, epfd, line);
		if (info)
			(void)aw_libc()->fclose(info);
	}
	if (dir)
		closedir(dir);
}

/* Removes fd from its sets, and frees the registrations that the kernel no longer has. */
static void leave_sets(struct aw_sock *sock, int fd) AW_REQUIRES(aw_fdtab_mutex)
{
	struct aw_registration **at = &sock->registrations;

	while (*at) {
		struct aw_registration *reg = *at;

		if (reg->fd == fd) {
			/*
			 * EPOLLONESHOT without an event makes the kernel report errors and hang-ups
			 * alone.
			 */
			if (reg->delivered)
				reg->event.events = EPOLLONESHOT;
			if (aw_libc()->epoll_ctl(reg->epfd, EPOLL_CTL_DEL, fd, NULL) != 0) {
				free_registration(at);
				continue;
			}
		}
		at = &reg->next;
	}
}

int aw_registration_swap(struct aw_sock *sock, int fd, int new_fd)
{
	int flags = aw_libc()->fcntl(fd, F_GETFD);
	int err = 0;

	leave_sets(sock, fd);
	if (aw_libc()->dup3(new_fd, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0) < 0)
		err = errno;
	for (struct aw_registration *reg = sock->registrations; reg; reg = reg->next) {
		if (reg->fd != fd)
			continue;
		reg->widened = false;
		aw_libc()->epoll_ctl(reg->epfd, EPOLL_CTL_ADD, fd, &reg->event);
	}
	return err;
}

void aw_registration_swap_all(struct aw_sock *sock, int new_fd, const struct stat *file)
{
	for (int fd = aw_fdtab_next_fd(sock, -1); fd >= 0; fd = aw_fdtab_next_fd(sock, fd)) {
		int err = aw_fdtab_is_file_of(fd, sock) ? aw_registration_swap(sock, fd, new_fd)
							: 0;

		if (err)
			aw_log(AW_LOG_ERROR, "cannot replace fd %d: %s", fd, strerror(err));
	}
	sock->dev = file->st_dev;
	sock->swapped_ino = sock->ino;
	sock->ino = file->st_ino;
}

void aw_registration_widen(struct aw_sock *sock)
{
	for (struct aw_registration *reg = sock->registrations; reg; reg = reg->next) {
		struct epoll_event event = reg->event;

		event.events |= EPOLLOUT;
		if (reg->event.events & EPOLLOUT)
			continue;
		reg->widened = true;
		aw_libc()->epoll_ctl(reg->epfd, EPOLL_CTL_MOD, reg->fd, &event);
	}
}

void aw_registration_narrow(struct aw_sock *sock)
{
	for (struct aw_registration *reg = sock->registrations; reg; reg = reg->next) {
		if (!reg->widened)
			continue;
		reg->widened = false;
		aw_libc()->epoll_ctl(reg->epfd, EPOLL_CTL_MOD, reg->fd, &reg->event);
	}
}

void aw_registration_await(struct aw_sock *sock, uint32_t events)
{
	for (struct aw_registration *reg = sock->registrations; reg; reg = reg->next) {
		struct epoll_event event = reg->event;

		event.events &=
			~(uint32_t)(EPOLLIN | EPOLLOUT | EPOLLRDNORM | EPOLLWRNORM | EPOLLWRBAND);
		event.events |= events;
		reg->widened = true;
		aw_libc()->epoll_ctl(reg->epfd, EPOLL_CTL_MOD, reg->fd, &event);
	}
}

struct wanted {
	int epfd;
	epoll_data_t data;
	struct aw_sock *sock;
	struct aw_registration *reg;
};

static void match_registration(struct aw_sock *sock, int fd, void *arg) AW_REQUIRES(aw_fdtab_mutex)
{
	struct wanted *wanted = arg;

	(void)fd;
	if (wanted->reg || sock->state < AW_FD_CONNECTING)
		return;
	for (struct aw_registration *reg = sock->registrations; reg; reg = reg->next) {
		if (reg->epfd == wanted->epfd && reg->event.data.u64 == wanted->data.u64) {
			wanted->reg = reg;
			wanted->sock = sock;
			return;
		}
	}
}

struct aw_registration *aw_registration_find(int epfd, epoll_data_t data, struct aw_sock **sock)
{
	struct wanted wanted = { .epfd = epfd, .data = data };
	struct aw_sock *likely = aw_fdtab_get(data.fd); /* most programs give the fd as data */

	if (likely)
		match_registration(likely, data.fd, &wanted);
	if (!wanted.reg)
		aw_fdtab_each(match_registration, &wanted);
	if (wanted.reg)
		*sock = wanted.sock;
	return wanted.reg;
}
