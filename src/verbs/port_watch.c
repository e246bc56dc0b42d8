// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The lock is held while the interfaces are read and while events are raised, so that events come in the order of the changes.
#include "verbs/port_watch.h"

#include "base/log.h"
#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "net/base/persona.h"
#include "net/progress/watch.h"
#include "ring/lock.h"
#include "verbs/context.h"
#include "verbs/gid.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* The first change is told at once, those that follow it within this time together: one command makes several of them. */
#define TOGETHER_MS 10
#define DRAIN_MAX 1024 /* messages that one look takes; the rest bring the next look */

struct port_watch {
	struct aw_watch watch; /* first: the watch is this */
	uint32_t generation;
	/* The socket's: the program may have closed the fd, and have another file at its number. */
	dev_t dev;
	ino_t ino;
};

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct port_watch *watch; /* NULL: nobody listens */
	uint32_t contexts; /* open, of this process */
	bool failed; /* to listen, which was logged */
	struct vb_port_seen told;
} port AW_GUARDED_BY(lock);

static bool has_socket(const struct port_watch *watch)
{
	struct stat file;

	return fstat(watch->watch.fd, &file) == 0 && file.st_dev == watch->dev &&
	       file.st_ino == watch->ino;
}

static void release(struct aw_watch *watch)
{
	if (has_socket((struct port_watch *)watch))
		aw_close_now(watch->fd);
	free(watch);
}

static void end(void) AW_REQUIRES(lock)
{
	struct port_watch *ended = port.watch;

	port.watch = NULL;
	if (ended)
		aw_watch_remove(&ended->watch);
}

/* Raises what has changed since the last look. */
static void look(void) AW_REQUIRES(lock)
{
	struct vb_port_seen now;
	int err = vb_gids_look(&now);

	if (err) {
		aw_log(AW_LOG_WARN, "port: its interfaces cannot be read: %s", strerror(err));
		return;
	}
	if (now.active != port.told.active)
		vb_context_raise_port(now.active ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
	if (now.changes != port.told.changes && aw_persona_is_roce())
		vb_context_raise_port(IBV_EVENT_GID_CHANGE);
	port.told = now;
}

/* False: the socket tells nothing any more. */
static bool drain(int fd)
{
	char octet;

	for (int i = 0; i < DRAIN_MAX; i++)
		/* ENOBUFS: the socket has dropped some messages. */
		if (aw_recv_now(fd, &octet, sizeof(octet), 0) < 0 && errno != ENOBUFS)
			return errno == EAGAIN || errno == EINTR;
	return true;
}

static void on_news(struct aw_watch *watch, uint32_t events)
{
	aw_lock(&lock);
	if (port.watch && watch == &port.watch->watch) {
		bool works = has_socket(port.watch) && drain(watch->fd);

		look();
		if (!works)
			aw_watch_events(watch, 0);
		else if (events & AW_WATCH_TIMEOUT)
			aw_watch_events(watch, EPOLLIN);
		else
			aw_watch_events(watch, 0);
		if (works && !(events & AW_WATCH_TIMEOUT))
			aw_watch_deadline(watch, TOGETHER_MS);
	}
	aw_unlock(&lock);
}

static int socket_open(struct port_watch *watch)
{
	struct sockaddr_nl addr = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE), err;
	struct stat file;

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 && fstat(fd, &file) == 0) {
		watch->dev = file.st_dev;
		watch->ino = file.st_ino;
		return fd;
	}
	err = errno;
	aw_close_now(fd);
	return -err;
}

static int begin(void) AW_REQUIRES(lock)
{
	struct port_watch *watch = calloc(1, sizeof(*watch));
	int fd, err;

	if (!watch)
		return ENOMEM;
	watch->generation = aw_fork_generation();
	fd = socket_open(watch);
	err = fd < 0 ? -fd : aw_watch_add(&watch->watch, fd, EPOLLIN, on_news, release);
	if (err) {
		if (fd >= 0)
			aw_close_now(fd);
		free(watch);
		return err;
	}
	port.watch = watch;
	return 0;
}

void vb_port_watch_begin(void)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	int err;

	aw_lock(&lock);
	if (port.watch &&
	    (port.watch->generation != aw_fork_generation() || !has_socket(port.watch)))
		end();
	if (!port.watch && !port.failed) {
		/* The port that the program knows, or as it is before the socket listens. */
		bool known = vb_gids_last(&port.told) || vb_gids_look(&port.told) == 0;

		err = known ? begin() : EIO;
		port.failed = err != 0;
		if (err)
			aw_log(AW_LOG_WARN, "no events of the port: %s", strerror(err));
		else
			look();
	}
	aw_unlock(&lock);
}

void vb_port_watch_look(const struct ibv_context *context)
{
	int flags = fcntl(context->async_fd, F_GETFL);

	if (flags >= 0 && flags & O_NONBLOCK)
		vb_port_watch_begin();
}

void vb_port_watch_opened(void)
{
	aw_lock(&lock);
	port.contexts++;
	port.failed = false;
	aw_unlock(&lock);
}

void vb_port_watch_closed(uint32_t generation)
{
	aw_lock(&lock);
	if (generation == aw_fork_generation() && --port.contexts == 0)
		end();
	aw_unlock(&lock);
}

/* The copy of the socket would keep news that only the parent reads. */
static void fork_child(void) AW_REQUIRES(lock)
{
	port.contexts = 0;
	if (port.watch && has_socket(port.watch)) {
		aw_close_now(port.watch->watch.fd);
		port.watch->watch.fd = -1;
	}
}

static const struct aw_fork_handlers fork_handlers = { .lock = &lock, .child = fork_child };

static __attribute__((constructor)) void prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_PORT, &fork_handlers);
}
