// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrapper: syscall, for programs that fork by it and so past pthread_atfork, and for those that would reach
// sockets by io_uring, which sees files and no wrappers. No other call is looked at.
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "xsock/preload/libc.h"
#include "xsock/preload/mode.h"
#include "xsock/preload/sandbox.h"
#include "xsock/preload/say.h"
#include "xsock/preload/touch.h"

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

/* Programs that use io_uring do without where the kernel has none. */
static bool is_refused(long number)
{
	if (number != SYS_io_uring_setup || (!aw_mode_may(true) && !aw_mode_may(false)))
		return false;
	aw_say(AW_SAY_INFO, "no io_uring: it cannot carry sockets in iWARP mode");
	errno = ENOSYS;
	return true;
}

/* libc's takes six arguments, whatever the call needs, and so does this one. */
AW_WRAPPER long syscall(long number, ...)
{
	long a[ARGUMENTS], result;
	va_list list;

	va_start(list, number);
	for (int i = 0; i < ARGUMENTS; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (is_refused(number))
		return -1;
	if (aw_fdtab_any_touchy() && is_fork(number, a))
		aw_touch_pending();
	result = aw_libc()->syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (result == 0 && number == SYS_seccomp)
		aw_sandbox_enter();
	return result;
}
