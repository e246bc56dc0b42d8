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
#include <sys/epoll.h>
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

int aw_event_fd_open_set(int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = AW_EVENT_FD_KEY };
	int set = epoll_create1(EPOLL_CLOEXEC);

	if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &ev) == 0)
		return set;
	int err = errno;

	close(set);
	errno = err;
	return -1;
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

/* This function makes the system call itself, because a wrapper of dup3 may take locks that the fork still holds. */
static void renumber(int fresh, int fd)
{
	if (fresh < 0 || fresh == fd)
		return;
	(void)syscall(SYS_dup3, fresh, fd, O_CLOEXEC);
	aw_close_now(fresh);
}

/*
 * Where the program has closed the fd, its number may be another file's. The number is free before the new fd is opened, so
 * that there is room for that.
 */
static void renew_fd(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	struct itimerspec left;

	if (timerfd_gettime(fd, &left) != 0)
		return;
	aw_close_now(fd);
	renumber(aw_event_fd_open(flags & O_NONBLOCK), fd);
}

/* Likewise: only the parent's set has the parent's fd under that number. */
static bool has_fd(int set, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = AW_EVENT_FD_KEY };

	return set >= 0 && epoll_ctl(set, EPOLL_CTL_MOD, fd, &ev) == 0;
}

static void renew(const struct aw_event_owner *owner)
{
	bool has_set = has_fd(owner->set, owner->fd);
	int flags = has_set ? fcntl(owner->set, F_GETFL) : 0;

	renew_fd(owner->fd);
	if (!has_set)
		return;
	aw_close_now(owner->set);
	renumber(aw_event_fd_open_set(owner->fd), owner->set);
	(void)fcntl(owner->set, F_SETFL, flags & O_NONBLOCK);
}

static void fork_child(void) AW_REQUIRES(lock)
{
	struct aw_event_owner *owner;

	LIST_FOREACH(owner, &owners, entry)
	{
		renew(owner);
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
