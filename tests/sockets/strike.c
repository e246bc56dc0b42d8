// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Loaded behind the library under test: what happens in the middle of a call. The program sets strike_next, and the library's
// next look for bytes or room raises SIGUSR1; or reset_next, and its next send meets a reset of the connection.
#include <dlfcn.h>
#include <linux/sock_diag.h>
#include <signal.h>
#include <sys/socket.h>

typedef ssize_t recvmsg_fn(int fd, struct msghdr *msg, int flags);
typedef ssize_t sendmsg_fn(int fd, const struct msghdr *msg, int flags);
typedef int connect_fn(int fd, const struct sockaddr *name, socklen_t len);
typedef int getsockopt_fn(int fd, int level, int name, void *value, socklen_t *len);

int strike_next, reset_next;

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
