// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Loaded behind the library under test: a signal that comes while the library looks for bytes or room, before it waits. The program
// sets strike_next, and the library's next look raises SIGUSR1.
#include <dlfcn.h>
#include <linux/sock_diag.h>
#include <signal.h>
#include <sys/socket.h>

typedef ssize_t recvmsg_fn(int fd, struct msghdr *msg, int flags);
typedef int getsockopt_fn(int fd, int level, int name, void *value, socklen_t *len);

int strike_next;

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
