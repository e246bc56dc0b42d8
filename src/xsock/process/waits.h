// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// These tell whether a call on a socket may wait, and how long, as recv(2) and socket(7) have it.
#ifndef XSOCK_PROCESS_WAITS_H
#define XSOCK_PROCESS_WAITS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "xsock/base/libc.h"

/* A number that was closed meanwhile has no modes: the kernel's call tells of that, and it is not EAGAIN. */
static inline bool aw_waits_may(int fd, int flags)
{
	int modes = flags & MSG_DONTWAIT ? O_NONBLOCK : aw_libc()->fcntl(fd, F_GETFL);

	return modes < 0 || !(modes & O_NONBLOCK);
}

/* Reads SO_SNDTIMEO or SO_RCVTIMEO; -1: there is none. */
static inline int64_t aw_waits_timeout_ns(int fd, int option)
{
	struct timeval limit = { 0 };
	socklen_t len = sizeof(limit);

	(void)aw_libc()->getsockopt(fd, SOL_SOCKET, option, &limit, &len);
	return limit.tv_sec || limit.tv_usec
		       ? (int64_t)limit.tv_sec * 1000000000 + (int64_t)limit.tv_usec * 1000
		       : -1;
}

#endif
