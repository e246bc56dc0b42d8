// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: forks, the process's end, and signal handlers. Undecided sockets are settled before a
// fork or the end. When libc calls one of these functions itself, no wrapper runs.
#include <errno.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "xsock/base/libc.h"
#include "xsock/framed/framed.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/settle.h"
#include "xsock/process/proxy.h"
#include "xsock/process/shield.h"
#include "xsock/wrap/wrap.h"

/* Ends a fork, in both processes. Returns pid; keeps errno. */
static pid_t finish_fork(pid_t pid)
{
	int saved = errno;

	aw_fdtab_fork_end();
	if (pid < 0)
		aw_framed_unshare();
	if (pid == 0)
		aw_proxy_present();
	errno = saved;
	return pid;
}

AW_WRAPPER pid_t fork(void)
{
	aw_framed_prepare_fork();
	aw_fdtab_fork_begin();
	return finish_fork(aw_libc()->fork());
}
AW_WRAPPER_ALIAS(__fork, fork);

AW_WRAPPER pid_t _Fork(void)
{
	aw_framed_prepare_fork();
	aw_fdtab_fork_begin();
	return finish_fork(aw_fdtab_bare_fork());
}

/*
 * Prepares a vfork and returns libc's vfork, to which the assembly below jumps, because the child
 * runs on the program's stack and returns from vfork first.
 */
typedef pid_t vfork_fn(void);
__attribute__((used)) vfork_fn *aw_process_vfork(void);

vfork_fn *aw_process_vfork(void)
{
	aw_framed_prepare_relatives();
	aw_settle_before_spawn();
	aw_framed_prepare_fork();
	return aw_libc()->vfork;
}

#if defined(__x86_64__)
__asm__(".text\n"
	".globl vfork\n"
	".type vfork, @function\n"
	"vfork:\n"
	"	subq $8, %rsp\n"
	"	call aw_process_vfork\n"
	"	addq $8, %rsp\n"
	"	jmp *%rax\n"
	".size vfork, . - vfork\n"
	".globl __vfork\n"
	".set __vfork, vfork\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl vfork\n"
	".type vfork, %function\n"
	"vfork:\n"
	"	stp x29, x30, [sp, #-16]!\n"
	"	bl aw_process_vfork\n"
	"	ldp x29, x30, [sp], #16\n"
	"	br x0\n"
	".size vfork, . - vfork\n"
	".globl __vfork\n"
	".set __vfork, vfork\n");
#else
AW_WRAPPER pid_t vfork(void)
{
	return fork();
}
AW_WRAPPER_ALIAS(__vfork, vfork);
#endif

void aw_process_prepare_fork(void)
{
	aw_framed_prepare_fork();
	aw_settle_all();
	aw_framed_share();
}

void aw_process_fork_failed(void)
{
	int saved = errno;

	aw_framed_unshare();
	errno = saved;
}

/* Reads all arguments, although the caller may have passed fewer (see syscall.c). */
__attribute__((no_sanitize("address"))) AW_WRAPPER int clone(int (*run)(void *), void *stack,
							     int flags, void *arg, ...)
{
	pid_t *parent_tid, *child_tid;
	va_list list;
	void *tls;
	int pid;

	va_start(list, arg);
	parent_tid = va_arg(list, pid_t *);
	tls = va_arg(list, void *);
	child_tid = va_arg(list, pid_t *);
	va_end(list);
	if (!(flags & CLONE_VM))
		aw_process_prepare_fork();
	pid = aw_libc()->clone(run, stack, flags, arg, parent_tid, tls, child_tid);
	if (pid < 0 && !(flags & CLONE_VM))
		aw_process_fork_failed();
	return pid;
}

/* libc's second name. An alias passes on the arguments as they came, however many. */
AW_WRAPPER int __clone(int (*run)(void *), void *stack, int flags, void *arg, ...) __THROW
	__attribute__((alias("clone")));

AW_WRAPPER int daemon(int nochdir, int noclose)
{
	int result;

	aw_framed_prepare_relatives();
	aw_fdtab_fork_begin();
	aw_fdtab_set_parent_exits(true);
	result = aw_libc()->daemon(nochdir, noclose);
	aw_fdtab_set_parent_exits(false);
	aw_fdtab_fork_end();
	if (result == 0)
		aw_proxy_present();
	return result;
}

AW_WRAPPER int forkpty(int *master, char *name, const struct termios *terminal,
		       const struct winsize *size)
{
	aw_framed_prepare_fork();
	aw_fdtab_fork_begin();
	return finish_fork(aw_libc()->forkpty(master, name, terminal, size));
}

AW_WRAPPER int system(const char *command)
{
	aw_settle_for_stranger(true);
	return aw_libc()->system(command);
}

AW_WRAPPER FILE *popen(const char *command, const char *mode)
{
	aw_settle_for_stranger(true);
	return aw_libc()->popen(command, mode);
}
AW_WRAPPER_ALIAS(_IO_popen, popen);

AW_WRAPPER _Noreturn void _exit(int status)
{
	aw_settle_before_end();
	aw_framed_end();
	aw_libc()->_exit(status);
	abort();
}
AW_WRAPPER_ALIAS(_Exit, _exit);

AW_WRAPPER _Noreturn void quick_exit(int status)
{
	aw_settle_before_end();
	aw_framed_end();
	aw_libc()->quick_exit(status);
	abort();
}

AW_WRAPPER int sigaction(int sig, const struct sigaction *action, struct sigaction *before)
{
	return aw_shield_sigaction(sig, action, before);
}
AW_WRAPPER_ALIAS(__sigaction, sigaction);

AW_WRAPPER sighandler_t signal(int sig, sighandler_t handler)
{
	return aw_shield_adopt(sig, aw_libc()->signal(sig, handler));
}
AW_WRAPPER_ALIAS(bsd_signal, signal);
AW_WRAPPER_ALIAS(ssignal, signal);

/* Programs that ask for no BSD have this function in place of signal(2). */
AW_WRAPPER sighandler_t __sysv_signal(int sig, sighandler_t handler)
{
	return aw_shield_adopt(sig, aw_libc()->sysv_signal(sig, handler));
}
AW_WRAPPER_ALIAS(sysv_signal, __sysv_signal);

/*
 * libc's header warns of each use of the name, which the table of libc's functions therefore lacks.
 */
AW_WRAPPER sighandler_t sigset(int sig, sighandler_t handler)
{
	__typeof__(signal) *set = aw_libc_newer("sigset");

	if (!set) {
		errno = ENOSYS;
		return SIG_ERR;
	}
	return aw_shield_adopt(sig, set(sig, handler));
}

static int print_framed(int fd, const char *format, va_list args)
{
	char *text;
	int len = vasprintf(&text, format, args);
	ssize_t sent = len;

	if (len > 0) {
		sent = write(fd, text, (size_t)len);
		free(text);
	}
	return (int)sent;
}

/* libc's vdprintf writes inside libc, without a wrapper. */
AW_WRAPPER int vdprintf(int fd, const char *format, va_list args)
{
	if (aw_first_io(fd, AW_FIRST_WRITE, false))
		return -1;
	if (aw_framed_slot(fd))
		return print_framed(fd, format, args);
	return aw_libc()->vdprintf(fd, format, args);
}

AW_WRAPPER int __vdprintf_chk(int fd, int flag, const char *format, va_list args)
{
	if (aw_first_io(fd, AW_FIRST_WRITE, false))
		return -1;
	if (aw_framed_slot(fd))
		return print_framed(fd, format, args);
	return aw_libc()->__vdprintf_chk(fd, flag, format, args);
}

AW_WRAPPER int dprintf(int fd, const char *format, ...)
{
	va_list args;
	int result;

	va_start(args, format);
	result = vdprintf(fd, format, args);
	va_end(args);
	return result;
}

AW_WRAPPER int __dprintf_chk(int fd, int flag, const char *format, ...)
{
	va_list args;
	int result;

	va_start(args, format);
	result = __vdprintf_chk(fd, flag, format, args);
	va_end(args);
	return result;
}
