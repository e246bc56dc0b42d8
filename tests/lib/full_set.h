// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// In the place of libc's epoll_ctl, for a test in which the kernel has no memory for another fd of one set. One file of a program
// includes it.
#ifndef TESTS_LIB_FULL_SET_H
#define TESTS_LIB_FULL_SET_H

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Atomic int full_epfd = -1; /* this set takes no more fds */
static _Atomic uint32_t refusals; /* of such fds */

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	if (op == EPOLL_CTL_ADD && epfd == full_epfd) {
		refusals++;
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_epoll_ctl, epfd, op, fd, ev);
}

#endif
