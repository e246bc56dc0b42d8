// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reading and writing an fd that is special (fdtab.h): framed or direct, or about to become one of the two.
#ifndef XSOCK_PRELOAD_IO_H
#define XSOCK_PRELOAD_IO_H

#include "xsock/framed/framed.h"
#include "xsock/preload/direct.h"

/* The first touch is made here. False: libc's call is to be made. Else *result and errno. */
static inline bool aw_io_receive(int fd, const struct iovec *iov, int count, int flags,
				 ssize_t *result)
{
	return aw_framed_receive(fd, iov, count, flags, result) ||
	       aw_direct_receive(fd, iov, count, flags, result) ||
	       aw_framed_receive(fd, iov, count, flags, result);
}

static inline bool aw_io_transmit(int fd, const struct iovec *iov, int count, int flags,
				  ssize_t *result)
{
	return aw_framed_transmit(fd, iov, count, flags, result) ||
	       aw_direct_transmit(fd, iov, count, flags, result) ||
	       aw_framed_transmit(fd, iov, count, flags, result);
}

#endif
