// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Loaded behind the library under test: stops the process before one of its calls. GATE in the environment is the number of that call,
// from 1, of those below; the process raises SIGSTOP and goes on with SIGCONT. "count": the process prints at its exit how many there were.
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static _Atomic(int) calls, looks;

static int limit(void)
{
	const char *text = getenv("GATE");

	return text ? atoi(text) : 0;
}

static void pass(void)
{
	if (atomic_fetch_add(&calls, 1) + 1 == limit())
		(void)raise(SIGSTOP);
}

/* Defines a function that passes the gate, and calls libc's. */
#define GATED(type, name, params, args)                    \
	type name params                                   \
	{                                                  \
		type(*real) params;                        \
                                                           \
		*(void **)&real = dlsym(RTLD_NEXT, #name); \
		pass();                                    \
		return real args;                          \
	}

GATED(int, socket, (int domain, int type, int protocol), (domain, type, protocol))
GATED(int, bind, (int fd, const struct sockaddr *name, socklen_t len), (fd, name, len))
GATED(int, listen, (int fd, int backlog), (fd, backlog))
GATED(int, connect, (int fd, const struct sockaddr *name, socklen_t len), (fd, name, len))
GATED(int, accept, (int fd, struct sockaddr *name, socklen_t *len), (fd, name, len))
GATED(int, accept4, (int fd, struct sockaddr *name, socklen_t *len, int flags),
      (fd, name, len, flags))
GATED(int, getsockname, (int fd, struct sockaddr *name, socklen_t *len), (fd, name, len))
GATED(int, getpeername, (int fd, struct sockaddr *name, socklen_t *len), (fd, name, len))
GATED(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *len),
      (fd, level, name, value, len))
GATED(int, shutdown, (int fd, int how), (fd, how))
GATED(int, dup3, (int from, int to, int flags), (from, to, flags))
GATED(int, close, (int fd), (fd))
GATED(ssize_t, send, (int fd, const void *bytes, size_t len, int flags), (fd, bytes, len, flags))
GATED(ssize_t, recv, (int fd, void *bytes, size_t len, int flags), (fd, bytes, len, flags))

/* How often a thread looks without waiting is a matter of chance: the first look alone passes the gate. */
int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	int (*real)(struct pollfd * fds, nfds_t count, int timeout_ms);

	*(void **)&real = dlsym(RTLD_NEXT, "poll");
	if (timeout_ms || atomic_fetch_add(&looks, 1) == 0)
		pass();
	return real(fds, count, timeout_ms);
}

int fcntl(int fd, int command, ...)
{
	int (*real)(int fd, int command, ...);
	va_list args;
	long arg;

	va_start(args, command);
	arg = va_arg(args, long);
	va_end(args);
	*(void **)&real = dlsym(RTLD_NEXT, "fcntl");
	pass();
	return real(fd, command, arg);
}
