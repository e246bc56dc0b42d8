// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Loaded behind the library under test: TCP as it is when the kernel's memory for it is out. The second long sendmsg(2) of
// the process is cut short, and for a while after it none of any TCP socket is taken. CUT_THREADS in the environment: the
// process gets no thread.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define LONG_BYTES 10000
#define CUT_BYTES 5000
#define FULL_MS 1500 /* longer than anyone may wait for room in a call that does not wait */

typedef ssize_t sendmsg_fn(int fd, const struct msghdr *msg, int flags);
typedef int create_fn(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
		      void *arg);
typedef int getsockopt_fn(int fd, int level, int name, void *value, socklen_t *len);

static _Atomic int long_ones;
static _Atomic long full_until_ms;

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static size_t length_of(const struct msghdr *msg)
{
	size_t len = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		len += msg->msg_iov[i].iov_len;
	return len;
}

static int is_tcp(int fd)
{
	int domain = 0;
	socklen_t len = sizeof(domain);
	getsockopt_fn *real;

	*(void **)&real = dlsym(RTLD_NEXT, "getsockopt");
	return real(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain != AF_UNIX;
}

/* Sends the first CUT_BYTES of the message. */
static ssize_t send_part(sendmsg_fn *real, int fd, const struct msghdr *msg, int flags)
{
	char bytes[CUT_BYTES];
	struct iovec one = { bytes, sizeof(bytes) };
	struct msghdr part = { .msg_iov = &one, .msg_iovlen = 1 };
	size_t at = 0;

	for (size_t i = 0; at < sizeof(bytes); i++) {
		size_t len = msg->msg_iov[i].iov_len, room = sizeof(bytes) - at;

		memcpy(bytes + at, msg->msg_iov[i].iov_base, len < room ? len : room);
		at += len < room ? len : room;
	}
	return real(fd, &part, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	sendmsg_fn *real;

	*(void **)&real = dlsym(RTLD_NEXT, "sendmsg");
	if (now_ms() < full_until_ms && is_tcp(fd)) {
		errno = EAGAIN;
		return -1;
	}
	if (length_of(msg) < LONG_BYTES || ++long_ones != 2)
		return real(fd, msg, flags);
	full_until_ms = now_ms() + FULL_MS;
	return send_part(real, fd, msg, flags);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	create_fn *real;

	*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	return getenv("CUT_THREADS") ? EAGAIN : real(thread, attr, run, arg);
}
