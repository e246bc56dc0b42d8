// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reading and writing an fd that is special (fdtab.h): framed, or not started yet.
#ifndef XSOCK_PRELOAD_IO_H
#define XSOCK_PRELOAD_IO_H

#include <pthread.h>

#include "xsock/framed/framed.h"
#include "xsock/preload/first_io.h"

/* The first touch is made here. False: libc's call is to be made. Else *result and errno. */
static inline bool aw_io_receive(int fd, const struct iovec *iov, int count, int flags,
				 ssize_t *result)
{
	if (aw_framed_receive(fd, iov, count, flags, result))
		return true;
	pthread_testcancel(); /* as libc's call would be cancelled */
	*result = aw_first_io(fd, AW_FIRST_READ, flags & MSG_DONTWAIT);
	return *result || aw_framed_receive(fd, iov, count, flags, result);
}

static inline bool aw_io_transmit(int fd, const struct iovec *iov, int count, int flags,
				  ssize_t *result)
{
	if (aw_framed_transmit(fd, iov, count, flags, result))
		return true;
	pthread_testcancel(); /* as libc's call would be cancelled */
	*result = aw_first_io(fd, AW_FIRST_WRITE, flags & MSG_DONTWAIT);
	return *result || aw_framed_transmit(fd, iov, count, flags, result);
}

#endif
