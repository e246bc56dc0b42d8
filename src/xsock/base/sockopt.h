// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads a socket option that is an int. Called by wrap/, preload/, framed/, process/ and proxy/.
#ifndef XSOCK_BASE_SOCKOPT_H
#define XSOCK_BASE_SOCKOPT_H

#include "xsock/base/libc.h"

/* Returns the option's value, or failed, with getsockopt(2)'s errno, where it cannot be read. */
static inline int aw_sockopt_int(int fd, int level, int name, int failed)
{
	int value = failed;
	socklen_t len = sizeof(value);

	return aw_libc()->getsockopt(fd, level, name, &value, &len) == 0 ? value : failed;
}

#endif
