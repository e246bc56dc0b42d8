// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A TCP socket that takes no more bytes takes some again when those that are on their way have reached the peer.
#ifndef TESTS_LIB_UNDER_WAY_H
#define TESTS_LIB_UNDER_WAY_H

#include <linux/sockios.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* How many bytes TCP keeps of fd, of which none is on its way to the peer, or -1 while some are. */
static inline int kept_at_rest(int fd)
{
	int kept = 0, unsent = 0;

	if (ioctl(fd, SIOCOUTQ, &kept) != 0 || ioctl(fd, SIOCOUTQNSD, &unsent) != 0)
		return -1;
	return kept == unsent ? kept : -1;
}

/* Without that, a socket that is full and gets more has its receive buffer enlarged by the kernel, though nobody reads. */
static inline bool fix_receive_buffer(int fd)
{
	int size = 0; /* the kernel's, twice what is asked for */
	socklen_t len = sizeof(size);

	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &len) != 0)
		return false;
	size /= 2;
	return setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)) == 0;
}

static inline bool is_under_way(int fd)
{
	return kept_at_rest(fd) < 0;
}

#endif
