// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads socket options. Called by wrap/, preload/, framed/, process/ and proxy/.
#ifndef XSOCK_BASE_SOCKOPT_H
#define XSOCK_BASE_SOCKOPT_H

#include <stdbool.h>

#include "xsock/base/libc.h"

/* Returns the option's value, or failed, with getsockopt(2)'s errno, where it cannot be read. */
static inline int aw_sockopt_int(int fd, int level, int name, int failed)
{
	int value = failed;
	socklen_t len = sizeof(value);

	return aw_libc()->getsockopt(fd, level, name, &value, &len) == 0 ? value : failed;
}

/* Returns whether SO_LINGER makes close reset the connection. */
static inline bool aw_sockopt_aborts(int fd)
{
	struct linger linger = { 0 };
	socklen_t len = sizeof(linger);

	return aw_libc()->getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len) == 0 &&
	       linger.l_onoff && !linger.l_linger;
}

#endif
