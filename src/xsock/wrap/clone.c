// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: clone and syscall. Programs fork by them without the handlers of pthread_atfork, reach
// sockets by io_uring, which knows no wrappers, or make calls on a socket that another wrapper must
// see.
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "xsock/base/libc.h"
#include "xsock/framed/framed.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/raw.h"
#include "xsock/preload/settle.h"
#include "xsock/process/mode.h"
#include "xsock/process/sandbox.h"
#include "xsock/wrap/wrap.h"

#define ARGUMENTS 6

/*
 * Settles the undecided sockets and counts the child among the holders of records, before a fork
 * that runs no handlers.
 */
static void prepare_fork(void)
{
	aw_framed_prepare_fork();
	aw_settle_all();
	aw_framed_share();
}

/* Reads all arguments, although the caller may have passed fewer (see syscall below). */
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

/* libc's second name. An alias passes on the arguments as they came, however many. */
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

/*
 * Makes the first I/O on the fd of a system call which no other wrapper sees. Returns 0, or -1 with
 * errno.
 */
static int prepare_call(long number, const long *arguments)
{
	int fd_index = aw_raw_fd_argument(number);

	if (is_fork(number, arguments))
		prepare_fork();
	if (number == SYS_splice && aw_first_io((int)arguments[0], AW_FIRST_READ, false))
		return -1;
	return fd_index < 0 ? 0 : aw_first_io((int)arguments[fd_index], AW_FIRST_WRITE, false);
}

/* A program that uses io_uring goes on without it on a kernel that has none. */
bool aw_uring_is_refused(enum aw_log_level level)
{
	if (!aw_mode_may(true) && !aw_mode_may(false))
		return false;
	aw_log(level, "io_uring is refused (ENOSYS), because it cannot carry sockets in iWARP "
		      "mode: a rule 'off' for this program allows it");
	return true;
}

/*
 * Reads six arguments, as libc's syscall does, although the caller may have passed fewer: the
 * address sanitizer would report that.
 */
__attribute__((no_sanitize("address"))) AW_WRAPPER long syscall(long number, ...)
{
	long a[ARGUMENTS], result;
	va_list list;

	va_start(list, number);
	for (int i = 0; i < ARGUMENTS; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_io_uring_setup && aw_uring_is_refused(AW_LOG_INFO))
		return aw_fail_with(ENOSYS);
	if (number == SYS_close && aw_fdtab_state((int)a[0]) != AW_FD_NONE)
		return close((int)a[0]);
	if (number == SYS_execve)
		return execve((const char *)a[0], (char *const *)a[1], (char *const *)a[2]);
	if (number == SYS_execveat)
		return execveat((int)a[0], (const char *)a[1], (char *const *)a[2],
				(char *const *)a[3], (int)a[4]);
	if (number == SYS_seccomp)
		aw_sandbox_prepare();
	if (aw_fdtab_any_undecided() && prepare_call(number, a))
		return -1;
	if (aw_raw_call_framed(number, a, &result))
		return result;
	result = aw_libc()->syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (result == 0 && number == SYS_seccomp)
		aw_sandbox_enter();
	return result;
}
