// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fd behind which a queue of events stands. poll(2) reports POLLIN while the fd is raised and
// never POLLOUT, as of the fds of the kernel's uverbs and rdma_cm.
#ifndef NET_EVENT_FD_H
#define NET_EVENT_FD_H

#include <stdbool.h>

/* A lowered fd with FD_CLOEXEC; -1 with errno EMFILE, ENFILE, ENOMEM. */
int aw_event_fd_open(bool nonblocking);

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
