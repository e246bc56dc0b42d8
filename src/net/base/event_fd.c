// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fd is that of a timer: such an fd is never writable, unlike an eventfd, and takes one number of the
// process, unlike a pipe. An ioctl raises it, which works as write(2) to an eventfd does; kernels
// without CONFIG_CHECKPOINT_RESTORE lack the ioctl, and there the timer expires, which takes longer.
#include "net/base/event_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* TFD_IOC_SET_TICKS of linux/timerfd.h, which goes with neither sys/timerfd.h nor fcntl.h */
#define SET_TICKS _IOW('T', 0, uint64_t)

int aw_event_fd_open(bool nonblocking)
{
	return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | (nonblocking ? TFD_NONBLOCK : 0));
}

static void set_timer(int fd, long expiry_ns)
{
	struct itimerspec at = { .it_value.tv_nsec = expiry_ns };

	timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL);
}

void aw_event_fd_raise(int fd)
{
	static _Atomic bool lacks_ioctl;
	const uint64_t one = 1;

	if (!atomic_load_explicit(&lacks_ioctl, memory_order_relaxed)) {
		if (ioctl(fd, SET_TICKS, &one) == 0 || errno == EBADF)
			return;
		atomic_store_explicit(&lacks_ioctl, true, memory_order_relaxed);
	}
	set_timer(fd, 1);
}

void aw_event_fd_lower(int fd)
{
	set_timer(fd, 0);
}

int aw_event_fd_await(int fd)
{
	uint64_t ticks;

	return read(fd, &ticks, sizeof(ticks)) < 0 ? errno : 0;
}
