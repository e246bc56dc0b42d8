// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: second names that libc has for a function which another file here wraps. Programs that
// were built when these names were usual call them. Each one calls the other wrapper; tests/abi
// compares the list with libc's.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include "xsock/base/libc.h"

int __close(int fd);
int __connect(int fd, const struct sockaddr *addr, socklen_t len);
int __dup2(int fd, int new);
int __fcntl(int fd, int cmd, ...);
pid_t __fork(void);
int __poll(struct pollfd *fds, nfds_t count, int timeout_ms);
ssize_t __read(int fd, void *buf, size_t count);
int __select(int limit, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout);
ssize_t __send(int fd, const void *buf, size_t len, int flags);
int __sigaction(int sig, const struct sigaction *action, struct sigaction *before);
ssize_t __write(int fd, const void *buf, size_t count);
int _IO_fclose(FILE *file);
FILE *_IO_fdopen(int fd, const char *mode);
FILE *_IO_popen(const char *command, const char *mode);
sighandler_t bsd_signal(int sig, sighandler_t handler);

AW_WRAPPER int __close(int fd)
{
	return close(fd);
}

AW_WRAPPER int __connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return connect(fd, addr, len);
}

AW_WRAPPER int __dup2(int fd, int new)
{
	return dup2(fd, new);
}

/* The command's argument, if it has one, is no larger than a pointer. */
AW_WRAPPER int __fcntl(int fd, int cmd, ...)
{
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	return fcntl(fd, cmd, arg);
}

AW_WRAPPER pid_t __fork(void)
{
	return fork();
}

AW_WRAPPER int __poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	return poll(fds, count, timeout_ms);
}

AW_WRAPPER ssize_t __read(int fd, void *buf, size_t count)
{
	return read(fd, buf, count);
}

AW_WRAPPER int __select(int limit, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout)
{
	return select(limit, in, out, except, timeout);
}

AW_WRAPPER ssize_t __send(int fd, const void *buf, size_t len, int flags)
{
	return send(fd, buf, len, flags);
}

AW_WRAPPER int __sigaction(int sig, const struct sigaction *action, struct sigaction *before)
{
	return sigaction(sig, action, before);
}

AW_WRAPPER ssize_t __write(int fd, const void *buf, size_t count)
{
	return write(fd, buf, count);
}

AW_WRAPPER int _IO_fclose(FILE *file)
{
	return fclose(file);
}

AW_WRAPPER FILE *_IO_fdopen(int fd, const char *mode)
{
	return fdopen(fd, mode);
}

AW_WRAPPER FILE *_IO_popen(const char *command, const char *mode)
{
	return popen(command, mode);
}

AW_WRAPPER sighandler_t bsd_signal(int sig, sighandler_t handler)
{
	return signal(sig, handler);
}

AW_WRAPPER sighandler_t ssignal(int sig, sighandler_t handler)
{
	return signal(sig, handler);
}

/* Jumps to vfork: a frame of this function would be gone when the child returns from it. */
#if defined(__x86_64__)
__asm__(".text\n"
	".globl __vfork\n"
	".type __vfork, @function\n"
	"__vfork:\n"
	"	jmp vfork@PLT\n"
	".size __vfork, . - __vfork\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl __vfork\n"
	".type __vfork, %function\n"
	"__vfork:\n"
	"	b vfork\n"
	".size __vfork, . - __vfork\n");
#else
pid_t __vfork(void);

AW_WRAPPER pid_t __vfork(void)
{
	return vfork();
}
#endif
