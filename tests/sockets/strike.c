// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Loaded behind the library under test: what happens in the middle of a call. The program sets strike_next, and the library's
// next look for bytes or room raises SIGUSR1; or reset_next, and its next send meets a reset of the connection; or meet_fd, and the library's
// next look for bytes of that fd stays there, with meeting set, until another thread closes or replaces the fd, which closed_inside counts, or waits for users of
// the number (sched_yield).
#include <dlfcn.h>
#include <linux/sock_diag.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>

typedef ssize_t recvmsg_fn(int fd, struct msghdr *msg, int flags);
typedef ssize_t sendmsg_fn(int fd, const struct msghdr *msg, int flags);
typedef int connect_fn(int fd, const struct sockaddr *name, socklen_t len);
typedef int getsockopt_fn(int fd, int level, int name, void *value, socklen_t *len);

typedef int close_fn(int fd);
typedef int dup2_fn(int fd, int new);
typedef int close_range_fn(unsigned first, unsigned last, int flags);
typedef int yield_fn(void);

int strike_next, reset_next;
_Atomic(int) meet_fd = -1, meeting, closed_inside;
static _Atomic(int) inside = -1; /* the fd of a look that stays in the middle */

static void meet(int fd)
{
	int wanted = fd;
	yield_fn *real;

	*(void **)&real = dlsym(RTLD_NEXT, "sched_yield");
	if (!atomic_compare_exchange_strong(&meet_fd, &wanted, -1))
		return;
	atomic_store(&inside, fd);
	atomic_store(&meeting, 1);
	while (atomic_load(&inside) >= 0)
		(void)real();
}

static void see_closed(unsigned first, unsigned last)
{
	int fd = atomic_load(&inside);

	if (fd < 0 || (unsigned)fd < first || (unsigned)fd > last)
		return;
	atomic_fetch_add(&closed_inside, 1);
	atomic_store(&inside, -1);
}

int close(int fd)
{
	close_fn *real;

	*(void **)&real = dlsym(RTLD_NEXT, "close");
	see_closed((unsigned)fd, (unsigned)fd);
	return real(fd);
}

int dup2(int fd, int new)
{
	dup2_fn *real;

	*(void **)&real = dlsym(RTLD_NEXT, "dup2");
	see_closed((unsigned)new, (unsigned)new);
	return real(fd, new);
}

int close_range(unsigned first, unsigned last, int flags)
{
	close_range_fn *real;

	*(void **)&real = dlsym(RTLD_NEXT, "close_range");
	see_closed(first, last);
	return real(first, last, flags);
}

int sched_yield(void)
{
	yield_fn *real;

	*(void **)&real = dlsym(RTLD_NEXT, "sched_yield");
	atomic_store(&inside, -1);
	return real();
}

static void strike(void)
{
	if (strike_next)
		(void)raise(SIGUSR1);
	strike_next = 0;
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	recvmsg_fn *real;

	*(void **)&real = dlsym(RTLD_NEXT, "recvmsg");
	strike();
	meet(fd);
	return real(fd, msg, flags);
}

static int is_tcp(int fd)
{
	int domain = 0;
	socklen_t len = sizeof(domain);
	getsockopt_fn *real;

	*(void **)&real = dlsym(RTLD_NEXT, "getsockopt");
	return real(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_INET;
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	static const struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	sendmsg_fn *real;
	connect_fn *disconnect;

	*(void **)&real = dlsym(RTLD_NEXT, "sendmsg");
	*(void **)&disconnect = dlsym(RTLD_NEXT, "connect");
	if (reset_next && is_tcp(fd)) {
		reset_next = 0;
		(void)disconnect(fd, &nobody, sizeof(nobody));
	}
	return real(fd, msg, flags);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	getsockopt_fn *real;

	*(void **)&real = dlsym(RTLD_NEXT, "getsockopt");
	if (level == SOL_SOCKET && name == SO_MEMINFO)
		strike();
	return real(fd, level, name, value, len);
}
