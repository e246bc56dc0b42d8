// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: the names that glibc has, where an address has 32 bits, for programs whose time_t has 64 (_TIME_BITS=64). Each one
// calls the wrapper of the plain name, whose time_t has 32 bits here. The names of functions that pass no time on are aliases
// (AW_WRAPPER_TIME64). tests/arch runs such a program.
#include <endian.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>

#include "xsock/base/libc.h"

_Static_assert(sizeof(time_t) == sizeof(int32_t), "compiled where time_t has 32 bits");

struct timespec64 {
	int64_t sec;
#if __BYTE_ORDER == __BIG_ENDIAN
	int32_t unused, nsec;
#else
	int32_t nsec, unused;
#endif
};

struct timeval64 {
	int64_t sec, usec;
};

int __epoll_pwait2_time64(int epfd, struct epoll_event *events, int max,
			  const struct timespec64 *timeout, const sigset_t *mask);
int __getsockopt64(int fd, int level, int name, void *value, socklen_t *len);
int __ppoll64(struct pollfd *fds, nfds_t count, const struct timespec64 *timeout,
	      const sigset_t *mask);
int __ppoll64_chk(struct pollfd *fds, nfds_t count, const struct timespec64 *timeout,
		  const sigset_t *mask, size_t room);
int __pselect64(int limit, fd_set *in, fd_set *out, fd_set *except,
		const struct timespec64 *timeout, const sigset_t *mask);
int __recvmmsg64(int fd, struct mmsghdr *msgs, unsigned count, int flags,
		 struct timespec64 *timeout);
int __select64(int limit, fd_set *in, fd_set *out, fd_set *except, struct timeval64 *timeout);
int __setsockopt64(int fd, int level, int name, const void *value, socklen_t len);

static int32_t clamp_to_32(int64_t value)
{
	if (value > INT32_MAX)
		return INT32_MAX;
	return value < INT32_MIN ? INT32_MIN : (int32_t)value;
}

/* Returns timeout, narrowed into *narrow, or NULL for NULL. */
static struct timespec *narrow_timespec(const struct timespec64 *timeout, struct timespec *narrow)
{
	if (!timeout)
		return NULL;
	*narrow = (struct timespec){ clamp_to_32(timeout->sec), timeout->nsec };
	return narrow;
}

AW_WRAPPER int __epoll_pwait2_time64(int epfd, struct epoll_event *events, int max,
				     const struct timespec64 *timeout, const sigset_t *mask)
{
	struct timespec narrow;

	return epoll_pwait2(epfd, events, max, narrow_timespec(timeout, &narrow), mask);
}

AW_WRAPPER int __ppoll64(struct pollfd *fds, nfds_t count, const struct timespec64 *timeout,
			 const sigset_t *mask)
{
	struct timespec narrow;

	return ppoll(fds, count, narrow_timespec(timeout, &narrow), mask);
}

AW_WRAPPER int __ppoll64_chk(struct pollfd *fds, nfds_t count, const struct timespec64 *timeout,
			     const sigset_t *mask, size_t room)
{
	struct timespec narrow;

	return __ppoll_chk(fds, count, narrow_timespec(timeout, &narrow), mask, room);
}

AW_WRAPPER int __pselect64(int limit, fd_set *in, fd_set *out, fd_set *except,
			   const struct timespec64 *timeout, const sigset_t *mask)
{
	struct timespec narrow;

	return pselect(limit, in, out, except, narrow_timespec(timeout, &narrow), mask);
}

/* Linux writes the time that was left to timeout. */
AW_WRAPPER int __select64(int limit, fd_set *in, fd_set *out, fd_set *except,
			  struct timeval64 *timeout)
{
	struct timeval narrow;
	int ready;

	if (!timeout)
		return select(limit, in, out, except, NULL);
	narrow = (struct timeval){ clamp_to_32(timeout->sec), clamp_to_32(timeout->usec) };
	ready = select(limit, in, out, except, &narrow);
	*timeout = (struct timeval64){ narrow.tv_sec, narrow.tv_usec };
	return ready;
}

AW_WRAPPER int __recvmmsg64(int fd, struct mmsghdr *msgs, unsigned count, int flags,
			    struct timespec64 *timeout)
{
	struct timespec narrow;
	int got = recvmmsg(fd, msgs, count, flags, narrow_timespec(timeout, &narrow));

	if (timeout)
		*timeout = (struct timespec64){ .sec = narrow.tv_sec, .nsec = narrow.tv_nsec };
	return got;
}

/* The plain name of an option whose value is a struct timeval64, or -1. */
static int narrow_option(int level, int name)
{
	if (level != SOL_SOCKET)
		return -1;
	if (name == SO_RCVTIMEO_NEW)
		return SO_RCVTIMEO;
	return name == SO_SNDTIMEO_NEW ? SO_SNDTIMEO : -1;
}

AW_WRAPPER int __setsockopt64(int fd, int level, int name, const void *value, socklen_t len)
{
	int plain = narrow_option(level, name);
	const struct timeval64 *wide = value;
	struct timeval narrow;

	if (plain < 0 || !wide || len < sizeof(*wide))
		return setsockopt(fd, level, name, value, len);
	narrow = (struct timeval){ clamp_to_32(wide->sec), clamp_to_32(wide->usec) };
	return setsockopt(fd, level, plain, &narrow, sizeof(narrow));
}

AW_WRAPPER int __getsockopt64(int fd, int level, int name, void *value, socklen_t *len)
{
	int plain = narrow_option(level, name);
	struct timeval64 *wide = value;
	struct timeval narrow;
	socklen_t narrow_len = sizeof(narrow);

	if (plain < 0 || !wide || !len || *len < sizeof(*wide))
		return getsockopt(fd, level, name, value, len);
	if (getsockopt(fd, level, plain, &narrow, &narrow_len))
		return -1;
	*wide = (struct timeval64){ narrow.tv_sec, narrow.tv_usec };
	*len = sizeof(*wide);
	return 0;
}
