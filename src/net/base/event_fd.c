// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The fd is that of a timer: such an fd is never writable, unlike an eventfd, and takes one number of the
// process, unlike a pipe. An ioctl raises it, which works as write(2) to an eventfd does; kernels
// without CONFIG_CHECKPOINT_RESTORE lack the ioctl, and there the timer expires, which takes longer.
#include "net/base/event_fd.h"

#include "net/base/fork.h"
#include "net/base/io_now.h"
#include "ring/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
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

static aw_mutex lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, aw_event_owner) owners AW_GUARDED_BY(lock) = LIST_HEAD_INITIALIZER(owners);

/*
 * Where the program has closed the fd, its number may be another file's. The number is free before the new fd is opened, so
 * that there is room for that. This function makes the system call itself, because a wrapper of dup3 may take locks that the
 * fork still holds.
 */
static void renew(int fd)
{
	int flags = fcntl(fd, F_GETFL), fresh;
	struct itimerspec left;

	if (timerfd_gettime(fd, &left) != 0)
		return;
	aw_close_now(fd);
	fresh = aw_event_fd_open(flags & O_NONBLOCK);
	if (fresh < 0 || fresh == fd)
		return;
	(void)syscall(SYS_dup3, fresh, fd, O_CLOEXEC);
	aw_close_now(fresh);
}

static void fork_child(void) AW_REQUIRES(lock)
{
	struct aw_event_owner *owner;

	LIST_FOREACH(owner, &owners, entry)
	{
		renew(owner->fd);
		owner->inherit(owner);
	}
}

static const struct aw_fork_handlers fork_handlers = { .lock = &lock, .child = fork_child };

static __attribute__((constructor)) void prepare_for_fork(void)
{
	aw_fork_register(AW_FORK_EVENT_FDS, &fork_handlers);
}

void aw_event_owner_add(struct aw_event_owner *owner)
{
	aw_lock(&lock);
	LIST_INSERT_HEAD(&owners, owner, entry);
	aw_unlock(&lock);
}

void aw_event_owner_remove(struct aw_event_owner *owner)
{
	aw_lock(&lock);
	LIST_REMOVE(owner, entry);
	aw_unlock(&lock);
}
