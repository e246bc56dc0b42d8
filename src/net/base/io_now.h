// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// System calls that do not wait, for threads that hold locks. The C library's functions for them are cancellation points
// (pthreads(7)) whether they wait or not: a thread of the program that is cancelled in one would leave its locks taken. These
// are none. Results and errno are those of the functions whose names they have.
//
// Calls that make or destroy objects of verbs and rdma_cm hold cancellation back from their first
// line to their last (AW_UNCANCELLED), also while they wait for the program to acknowledge events.
// So do a reset of a QP, GID queries, the calls for multicast groups, and a fork. Calls that wait
// for an event are cancellation points while they wait.
#ifndef AW_NET_BASE_IO_NOW_H
#define AW_NET_BASE_IO_NOW_H

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The C library's own syscall(2), which is no cancellation point, for the calls that each message makes: holding cancellation
 * back takes longer than the rest of their way to the kernel. NULL where others have put functions in place of send(2), recv(2),
 * read(2) or write(2), which are to see the calls.
 */
extern long (*aw_io_call)(long number, ...);

/* The thread's state before, for aw_cancel_restore. */
static inline int aw_cancel_disable(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void aw_cancel_restore(int state)
{
	pthread_setcancelstate(state, NULL);
}

static inline void aw_cancel_end(const int *state)
{
	aw_cancel_restore(*state);
}

/*
 * Of the variable that has the thread's state before: at the function's end the state is that again. A call that makes or
 * destroys an object is no cancellation point: half way, the object would be lost, or a lock left taken.
 */
#define AW_UNCANCELLED __attribute__((cleanup(aw_cancel_end), unused))

/* flags: 0 or MSG_PEEK. */
static inline ssize_t aw_recv_now(int fd, void *buf, size_t len, int flags)
{
	if (aw_io_call)
		return aw_io_call(SYS_recvfrom, fd, buf, len, flags | MSG_DONTWAIT, NULL, NULL);
	int state = aw_cancel_disable();
	ssize_t n = recv(fd, buf, len, flags | MSG_DONTWAIT);

	aw_cancel_restore(state);
	return n;
}

static inline ssize_t aw_recvmsg_now(int fd, struct msghdr *msg)
{
	int state = aw_cancel_disable();
	ssize_t n = recvmsg(fd, msg, MSG_DONTWAIT);

	aw_cancel_restore(state);
	return n;
}

static inline ssize_t aw_send_now(int fd, const void *buf, size_t len)
{
	if (aw_io_call)
		return aw_io_call(SYS_sendto, fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
	int state = aw_cancel_disable();
	ssize_t n = send(fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	aw_cancel_restore(state);
	return n;
}

static inline ssize_t aw_sendmsg_now(int fd, const struct msghdr *msg)
{
	int state = aw_cancel_disable();
	ssize_t n = sendmsg(fd, msg, MSG_DONTWAIT | MSG_NOSIGNAL);

	aw_cancel_restore(state);
	return n;
}

/* fd: non-blocking. */
static inline ssize_t aw_read_now(int fd, void *buf, size_t len)
{
	if (aw_io_call)
		return aw_io_call(SYS_read, fd, buf, len);
	int state = aw_cancel_disable();
	ssize_t n = read(fd, buf, len);

	aw_cancel_restore(state);
	return n;
}

static inline ssize_t aw_write_now(int fd, const void *buf, size_t len)
{
	if (aw_io_call)
		return aw_io_call(SYS_write, fd, buf, len);
	int state = aw_cancel_disable();
	ssize_t n = write(fd, buf, len);

	aw_cancel_restore(state);
	return n;
}

static inline int aw_connect_now(int fd, const struct sockaddr *addr, socklen_t len)
{
	int state = aw_cancel_disable();
	int ret = connect(fd, addr, len);

	aw_cancel_restore(state);
	return ret;
}

/* flags: without O_CREAT. */
static inline int aw_open_now(const char *path, int flags)
{
	int state = aw_cancel_disable();
	int fd = open(path, flags);

	aw_cancel_restore(state);
	return fd;
}

static inline int aw_close_now(int fd)
{
	int state = aw_cancel_disable();
	int ret = close(fd);

	aw_cancel_restore(state);
	return ret;
}

/* The events of fd that poll(2) returns at once; 0: none. */
static inline short aw_poll_now(int fd, short events)
{
	struct pollfd pollfd = { .fd = fd, .events = events };
	int state = aw_cancel_disable();
	int ready = poll(&pollfd, 1, 0);

	aw_cancel_restore(state);
	return ready > 0 ? pollfd.revents : 0;
}

static inline int aw_epoll_now(int epfd, struct epoll_event *ready, int max)
{
	int state = aw_cancel_disable();
	int n = epoll_wait(epfd, ready, max, 0);

	aw_cancel_restore(state);
	return n;
}

#endif
