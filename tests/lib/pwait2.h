// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The system call behind epoll_pwait2, for tests that have a function of that name of their own.
#ifndef LIB_PWAIT2_H
#define LIB_PWAIT2_H

#include <linux/time_types.h>
#include <signal.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The kernel's time has 64 bits, also where the program's has 32. */
static inline int pwait2_call(int epfd, struct epoll_event *events, int max,
			      const struct timespec *timeout, const sigset_t *mask)
{
	struct __kernel_timespec time = { 0 };

	if (timeout)
		time = (struct __kernel_timespec){ timeout->tv_sec, timeout->tv_nsec };
	return (int)syscall(SYS_epoll_pwait2, epfd, events, max, timeout ? &time : NULL, mask,
			    _NSIG / 8);
}

#endif
