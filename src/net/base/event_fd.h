// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fd behind which a queue of events stands. poll(2) reports POLLIN while the fd is raised and
// never POLLOUT, as of the fds of the kernel's uverbs and rdma_cm.
#ifndef NET_EVENT_FD_H
#define NET_EVENT_FD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* Embedded in the object whose events stand behind the fd. Its entry is guarded by event_fd.c's lock. */
struct aw_event_owner {
	LIST_ENTRY(aw_event_owner) entry;
	int fd;
	int set; /* an epoll set that has fd, whose number is the program's; -1: fd's is */
	/* in the child of a fork, where the object has no events yet; its threads and its locks' holders are the parent's */
	void (*inherit)(struct aw_event_owner *owner);
};

/* A lowered fd with FD_CLOEXEC; -1 with errno EMFILE, ENFILE, ENOMEM. */
int aw_event_fd_open(bool nonblocking);

/* The key of an event fd in an epoll set: no handle is this large. */
#define AW_EVENT_FD_KEY UINT64_MAX

/* An epoll set with fd in it, readable while fd is, with FD_CLOEXEC; -1 with errno EMFILE, ENFILE, ENOMEM. */
int aw_event_fd_open_set(int fd);

/*
 * From add to remove the child of a fork has an fd, and a set, of its own under the same number, lowered: else the parent's events
 * would make the child's fd readable, and the child would lower the parent's.
 */
void aw_event_owner_add(struct aw_event_owner *owner);
void aw_event_owner_remove(struct aw_event_owner *owner);

/* Makes the fd readable. An edge-triggered set learns of every raise. Never blocks. */
void aw_event_fd_raise(int fd);

/* Never blocks. */
void aw_event_fd_lower(int fd);

/*
 * Waits until the fd is raised, unless the fd has O_NONBLOCK, and lowers it, as one read(2), which
 * is a cancellation point. 0, or EAGAIN, EINTR, EBADF.
 */
int aw_event_fd_await(int fd);

#endif
