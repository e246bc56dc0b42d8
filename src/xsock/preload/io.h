// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads and writes of an fd that is framed, undecided or an extended socket's (fdtab.h). Called by the wrappers, without
// a lock.
#ifndef XSOCK_PRELOAD_IO_H
#define XSOCK_PRELOAD_IO_H

#include <pthread.h>

#include "xsock/framed/framed.h"
#include "xsock/preload/extended.h"
#include "xsock/preload/first_io.h"

/* Returns whether the fd is bridged, framed or undecided: libc's call may not be enough. */
static inline bool aw_io_is_carried(int fd)
{
	return __builtin_expect(aw_fdtab_state(fd) >= AW_FD_BRIDGED, 0);
}

/*
 * Make the first I/O if it is due. False: the caller makes libc's call. True: *result and errno are
 * the call's.
 */
static inline bool aw_io_receive(int fd, const struct iovec *iov, int count, int flags,
				 ssize_t *result)
{
	if (aw_fdtab_state(fd) == AW_FD_BRIDGED)
		return aw_extended_receive(fd, iov, count, flags, result);
	pthread_testcancel(); /* as libc's call, also when it does not wait */
	if (aw_framed_receive(fd, iov, count, flags, result))
		return true;
	do {
		*result = aw_first_io(fd, AW_FIRST_READ, flags & MSG_DONTWAIT);
		if (*result || aw_framed_receive(fd, iov, count, flags, result))
			return true;
	} while (aw_fdtab_state(fd) == AW_FD_LEAVING);
	return false;
}

static inline bool aw_io_transmit(int fd, const struct iovec *iov, int count, int flags,
				  ssize_t *result)
{
	if (aw_fdtab_state(fd) == AW_FD_BRIDGED)
		return aw_extended_transmit(fd, iov, count, flags, result);
	pthread_testcancel(); /* as libc's call, also when it does not wait */
	if (aw_framed_transmit(fd, iov, count, flags, result))
		return true;
	do {
		*result = aw_first_io(fd, AW_FIRST_WRITE, flags & MSG_DONTWAIT);
		if (*result || aw_framed_transmit(fd, iov, count, flags, result))
			return true;
	} while (aw_fdtab_state(fd) == AW_FD_LEAVING);
	return false;
}

/* The same for one buffer. */
static inline bool aw_io_receive_one(int fd, void *buf, size_t len, int flags, ssize_t *result)
{
	struct iovec iov = { buf, len };

	return aw_io_receive(fd, &iov, 1, flags, result);
}

static inline bool aw_io_transmit_one(int fd, const void *buf, size_t len, int flags,
				      ssize_t *result)
{
	struct iovec iov = { (void *)buf, len };

	return aw_io_transmit(fd, &iov, 1, flags, result);
}

#endif
