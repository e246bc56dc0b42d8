// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: clone, for programs that fork by it, and syscall, for programs that fork by it and so past pthread_atfork, and for those that would reach
// sockets by io_uring, which sees files and no wrappers, or by calls that our other wrappers do not see.
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "xsock/base/libc.h"
#include "xsock/base/log.h"
#include "xsock/framed/framed.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/raw.h"
#include "xsock/process/mode.h"
#include "xsock/process/sandbox.h"
#include "xsock/wrap/wrap.h"

#define ARGUMENTS 6

static void prepare_fork(void)
{
	aw_framed_prepare_fork();
	aw_first_io_pending();
	aw_framed_share();
}

/* As with syscall below, it may have been passed fewer arguments. */
__attribute__((no_sanitize("address"))) AW_WRAPPER int clone(int (*run)(void *), void *stack,
							     int flags, void *arg, ...)
{
	pid_t *parent_tid, *child_tid;
	va_list list;
	void *tls;

	va_start(list, arg);
	parent_tid = va_arg(list, pid_t *);
	tls = va_arg(list, void *);
	child_tid = va_arg(list, pid_t *);
	va_end(list);
	if (!(flags & CLONE_VM))
		prepare_fork();
	return aw_libc()->clone(run, stack, flags, arg, parent_tid, tls, child_tid);
}

/* libc's second name. An alias passes the arguments on as they came, however many. */
AW_WRAPPER int __clone(int (*run)(void *), void *stack, int flags, void *arg, ...) __THROW
	__attribute__((alias("clone")));

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

/* The kernel's own socket is to be there for calls that pass our wrappers. */
static int prepare(long number, const long *arguments)
{
	int which = aw_raw_fd_argument(number);

	if (is_fork(number, arguments))
		prepare_fork();
	if (number == SYS_splice && aw_first_io((int)arguments[0], AW_FIRST_READ, false))
		return -1;
	return which < 0 ? 0 : aw_first_io((int)arguments[which], AW_FIRST_WRITE, false);
}

/* Programs that use io_uring do without where the kernel has none. */
bool aw_uring_is_refused(enum aw_xs_log_level level)
{
	if (!aw_mode_may(true) && !aw_mode_may(false))
		return false;
	aw_xs_log(level, "no io_uring: it cannot carry sockets in iWARP mode");
	return true;
}

/*
 * libc's takes six arguments, whatever the call needs, and so does this one: the caller may have passed
 * fewer, which the address sanitizer would not allow.
 */
__attribute__((no_sanitize("address"))) AW_WRAPPER long syscall(long number, ...)
{
	long a[ARGUMENTS], result;
	va_list list;

	va_start(list, number);
	for (int i = 0; i < ARGUMENTS; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_io_uring_setup && aw_uring_is_refused(AW_XS_LOG_INFO)) {
		errno = ENOSYS;
		return -1;
	}
	if (number == SYS_close && aw_fdtab_state((int)a[0]) != AW_FD_NONE)
		return close((int)a[0]);
	if (number == SYS_execve)
		return execve((const char *)a[0], (char *const *)a[1], (char *const *)a[2]);
	if (number == SYS_execveat)
		return execveat((int)a[0], (const char *)a[1], (char *const *)a[2],
				(char *const *)a[3], (int)a[4]);
	if (number == SYS_seccomp)
		aw_sandbox_prepare();
	if (aw_fdtab_any_undecided() && prepare(number, a))
		return -1;
	if (aw_raw_call_framed(number, a, &result))
		return result;
	result = aw_libc()->syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (result == 0 && number == SYS_seccomp)
		aw_sandbox_enter();
	return result;
}
