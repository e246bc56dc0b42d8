// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrapper: syscall. By it programs make calls that the wrapper of the same name must see, fork
// without the handlers of pthread_atfork, or reach sockets by io_uring.
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "xsock/base/libc.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/protect.h"
#include "xsock/process/sandbox.h"
#include "xsock/wrap/wrap.h"

#define ARGUMENTS 6

static bool is_fork(long number, const long *arguments)
{
	switch (number) {
	case SYS_clone:
		return !(arguments[0] & CLONE_VM);
#ifdef SYS_fork
	case SYS_fork:
		return true;
#endif
	default:
		return false;
	}
}

/*
 * Returns whether the first byte of a buffer can be read: a program that uses syscall(2) may count
 * on EFAULT. A sandbox may allow no call that finds out.
 */
static bool is_mapped(long at, long len)
{
	char byte;
	struct iovec local = { &byte, 1 }, remote = { (void *)at, 1 };

	return len <= 0 || aw_sandbox_is_on() ||
	       aw_libc()->syscall(SYS_process_vm_readv, getpid(), &local, 1, &remote, 1, 0) == 1 ||
	       errno != EFAULT;
}

/* The kernel takes an offset as two words, the lower one first. */
static off64_t offset_of(const long *words)
{
	return sizeof(long) == sizeof(off64_t) ? words[0]
					       : (off64_t)((uint64_t)(unsigned long)words[1] << 32 |
							   (unsigned long)words[0]);
}

/* Calls that move bytes to or from one buffer. */
static long call_buffer(long number, const long *a)
{
	int fd = (int)a[0];

	if (!is_mapped(a[1], a[2]))
		return aw_fail_with(EFAULT);
	if (number == SYS_read)
		return read(fd, (void *)a[1], (size_t)a[2]);
	if (number == SYS_write)
		return write(fd, (const void *)a[1], (size_t)a[2]);
	if (number == SYS_recvfrom)
		return recvfrom(fd, (void *)a[1], (size_t)a[2], (int)a[3], (struct sockaddr *)a[4],
				(socklen_t *)a[5]);
	return sendto(fd, (const void *)a[1], (size_t)a[2], (int)a[3],
		      (const struct sockaddr *)a[4], (socklen_t)a[5]);
}

/* Makes the call by its wrapper. *known becomes false if it has none, or is about no fd. */
static long call_wrapper(long number, const long *a, bool *known)
{
	int fd = (int)a[0];

	switch (number) {
	case SYS_read:
	case SYS_write:
	case SYS_recvfrom:
	case SYS_sendto:
		return call_buffer(number, a);
	case SYS_readv:
		return readv(fd, (const struct iovec *)a[1], (int)a[2]);
	case SYS_writev:
		return writev(fd, (const struct iovec *)a[1], (int)a[2]);
	case SYS_recvmsg:
		return recvmsg(fd, (struct msghdr *)a[1], (int)a[2]);
	case SYS_sendmsg:
		return sendmsg(fd, (const struct msghdr *)a[1], (int)a[2]);
	case SYS_recvmmsg:
		return recvmmsg(fd, (struct mmsghdr *)a[1], (unsigned)a[2], (int)a[3],
				(struct timespec *)a[4]);
	case SYS_sendmmsg:
		return sendmmsg(fd, (struct mmsghdr *)a[1], (unsigned)a[2], (int)a[3]);
	case SYS_sendfile:
		return sendfile(fd, (int)a[1], (off_t *)a[2], (size_t)a[3]);
	case SYS_splice:
		return splice(fd, (off64_t *)a[1], (int)a[2], (off64_t *)a[3], (size_t)a[4],
			      (unsigned)a[5]);
	case SYS_shutdown:
		return shutdown(fd, (int)a[1]);
	case SYS_ioctl:
		return ioctl(fd, (unsigned long)a[1], (void *)a[2]);
	case SYS_fcntl:
		return fcntl(fd, (int)a[1], (void *)a[2]);
	case SYS_preadv2:
		return preadv64v2(fd, (const struct iovec *)a[1], (int)a[2], offset_of(a + 3),
				  (int)a[5]);
	case SYS_pwritev2:
		return pwritev64v2(fd, (const struct iovec *)a[1], (int)a[2], offset_of(a + 3),
				   (int)a[5]);
	case SYS_epoll_ctl:
		return epoll_ctl(fd, (int)a[1], (int)a[2], (struct epoll_event *)a[3]);
	default:
		*known = false;
		return 0;
	}
}

/* Calls by which a number changes its file. */
static long call_number(long number, const long *a, bool *known)
{
	bool has_fd = aw_fdtab_state((int)a[0]) != AW_FD_NONE;
	bool has_any = has_fd || aw_fdtab_state((int)a[1]) != AW_FD_NONE;

	if (number == SYS_close && has_fd)
		return close((int)a[0]);
	if (number == SYS_close_range)
		return close_range((unsigned)a[0], (unsigned)a[1], (int)a[2]);
	if (number == SYS_dup && has_fd)
		return dup((int)a[0]);
	if (number == SYS_dup3 && has_any)
		return dup3((int)a[0], (int)a[1], (int)a[2]);
#ifdef SYS_dup2
	if (number == SYS_dup2 && has_any)
		return dup2((int)a[0], (int)a[1]);
#endif
	*known = false;
	return 0;
}

/* Calls that make a connection: where TLS is required none may begin unseen. */
static long call_opening(long number, const long *a, bool *known)
{
	switch (number) {
	case SYS_connect:
		return connect((int)a[0], (const struct sockaddr *)a[1], (socklen_t)a[2]);
#ifdef SYS_accept
	case SYS_accept:
		return accept((int)a[0], (struct sockaddr *)a[1], (socklen_t *)a[2]);
#endif
	case SYS_accept4:
		return accept4((int)a[0], (struct sockaddr *)a[1], (socklen_t *)a[2], (int)a[3]);
	case SYS_sendto:
		return call_buffer(number, a);
	default:
		*known = false;
		return 0;
	}
}

/*
 * Reads six arguments, as libc's syscall does, although the caller may have passed fewer: the
 * address sanitizer would report that.
 */
__attribute__((no_sanitize("address"))) AW_WRAPPER long syscall(long number, ...)
{
	long a[ARGUMENTS], result;
	bool known = true;
	va_list list;

	va_start(list, number);
	for (int i = 0; i < ARGUMENTS; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if ((number == SYS_io_uring_setup || number == SYS_io_setup) &&
	    aw_uring_is_refused(AW_LOG_INFO))
		return aw_fail_with(ENOSYS);
	result = call_number(number, a, &known);
	if (!known)
		result = aw_user_syscall(number, a, &known);
	if (known)
		return result;
	known = true;
	if (aw_protect_is_on())
		result = call_opening(number, a, &known);
	if (aw_protect_is_on() && known)
		return result;
	known = true;
	if (number == SYS_execve)
		return execve((const char *)a[0], (char *const *)a[1], (char *const *)a[2]);
	if (number == SYS_execveat)
		return execveat((int)a[0], (const char *)a[1], (char *const *)a[2],
				(char *const *)a[3], (int)a[4]);
	/*
	 * The call may be about a framed or undecided fd: those that have an fd have it as their first or third argument. A wrapper
	 * serves any other fd, too.
	 */
	if (aw_fdtab_is_special((int)a[0]) ||
	    ((number == SYS_splice || number == SYS_epoll_ctl) && aw_fdtab_is_special((int)a[2]))) {
		result = call_wrapper(number, a, &known);
		if (known)
			return result;
	}
	if (number == SYS_seccomp)
		aw_sandbox_prepare();
	if (is_fork(number, a))
		aw_process_prepare_fork();
	result = aw_libc()->syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (result < 0 && is_fork(number, a))
		aw_process_fork_failed();
	if (result == 0 && number == SYS_seccomp)
		aw_sandbox_enter();
	return result;
}
