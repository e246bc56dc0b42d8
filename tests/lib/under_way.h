// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A TCP socket that takes no more bytes takes some again when those that are on their way have reached the peer.
#ifndef TESTS_LIB_UNDER_WAY_H
#define TESTS_LIB_UNDER_WAY_H

#include <linux/sockios.h>
#include <stdbool.h>
#include <sys/ioctl.h>

/* True while TCP has sent bytes of fd that the peer's end has not acknowledged. */
static inline bool is_under_way(int fd)
{
	int kept = 0, unsent = 0;

	return ioctl(fd, SIOCOUTQ, &kept) != 0 || ioctl(fd, SIOCOUTQNSD, &unsent) != 0 ||
	       kept != unsent;
}

#endif
