// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The C library's own functions behind our wrappers, found once by dlsym(RTLD_NEXT). The preload
// library, and the code that it shares with the proxy process, call them through aw_libc(): a plain
// call would reach our wrapper.
#ifndef XSOCK_BASE_LIBC_H
#define XSOCK_BASE_LIBC_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* The functions that programs built with _FORTIFY_SOURCE call; no header declares them. */
int __dprintf_chk(int fd, int flag, const char *format, ...);
int __vdprintf_chk(int fd, int flag, const char *format, va_list args);
ssize_t __read_chk(int fd, void *buf, size_t count, size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t count, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t len, size_t room, int flags, ...);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
		size_t room);
/* Ends the program, with libc's words. */
_Noreturn void __chk_fail(void);

/* glibc's since 2.39. */
int pidfd_spawn(int *pidfd, const char *path, const posix_spawn_file_actions_t *actions,
		const posix_spawnattr_t *attr, char *const argv[], char *const env[]);
int pidfd_spawnp(int *pidfd, const char *file, const posix_spawn_file_actions_t *actions,
		 const posix_spawnattr_t *attr, char *const argv[], char *const env[]);

// clang-format off
#define AW_LIBC_FUNCTIONS(F) \
	F(socket) F(socketpair) F(bind) F(listen) F(accept) F(accept4) \
	F(connect) F(close) F(close_range) F(closefrom) F(dup) F(dup2) \
	F(dup3) F(fcntl) F(fcntl64) F(ioctl) F(shutdown) \
	F(read) F(write) F(readv) F(writev) F(send) \
	F(sendto) F(sendmsg) F(sendmmsg) F(recv) F(recvfrom) \
	F(recvmsg) F(recvmmsg) F(sendfile) F(sendfile64) F(splice) \
	F(poll) F(ppoll) \
	F(select) F(pselect) F(epoll_ctl) F(epoll_wait) F(epoll_pwait) \
	F(epoll_pwait2) F(getsockopt) F(setsockopt) F(getsockname) F(getpeername) \
	F(fdopen) F(fclose) F(freopen) F(freopen64) F(execve) F(execvpe) F(fexecve) \
	F(posix_spawn) F(posix_spawnp) F(syscall) F(prctl) F(fork) F(_Fork) F(clone) F(vfork) F(daemon) \
	F(forkpty) F(system) F(popen) F(_exit) F(quick_exit) F(sigaction) F(signal) F(sysv_signal) \
	F(vdprintf) F(__vdprintf_chk) F(preadv64v2) F(pwritev64v2) \
	F(dlopen) F(dlmopen) F(setuid) F(seteuid) F(setreuid) F(setresuid)
// clang-format on

struct aw_libc {
	bool found;
#define AW_LIBC_FIELD(name) __typeof__(name) *name;
	AW_LIBC_FUNCTIONS(AW_LIBC_FIELD)
#undef AW_LIBC_FIELD
};

extern struct aw_libc aw_libc_table;

void aw_libc_find(void);

/*
 * Returns a function that this libc may lack, or NULL. The table holds none of those: dlsym()
 * allocates memory for its error, and the table may be filled within a call of an allocator that is
 * not ready.
 */
void *aw_libc_newer(const char *name);

/*
 * Returns the table. It may not be filled yet: another library's constructor may call a wrapper
 * before ours has run.
 */
static inline const struct aw_libc *aw_libc(void)
{
	if (__builtin_expect(!aw_libc_table.found, 0))
		aw_libc_find();
	return &aw_libc_table;
}

/* Sets errno to err. Returns what a call returns that has failed so, or 0 if err is 0. */
static inline int aw_fail_with(int err)
{
	errno = err;
	return err ? -1 : 0;
}

/*
 * The check of a function that a program built with _FORTIFY_SOURCE calls: room is the size of the
 * buffer, as the compiler has found it.
 */
static inline void aw_check_room(size_t wanted, size_t room)
{
	if (__builtin_expect(wanted > room, 0))
		__chk_fail();
}

/* Marks a function that replaces libc's for the program. */
#define AW_WRAPPER __attribute__((visibility("default")))

/*
 * Gives the wrapper `name`, which this file defines, another name that libc has for it. Programs that were built when that
 * name was usual call it; tests/abi compares the names with libc's. gcc warns unless an alias has its target's attributes;
 * clang knows no `copy`.
 */
#ifdef __clang__
#define AW_ALIAS_OF(name) alias(#name)
#else
#define AW_ALIAS_OF(name) alias(#name), copy(name)
#endif
#define AW_WRAPPER_ALIAS(other, name) \
	AW_WRAPPER extern __typeof__(name) other __attribute__((AW_ALIAS_OF(name)))

/* The same for a name that libc has only where an address has 32 bits (wrap/aliases_time64.c). */
#if __SIZEOF_POINTER__ == 4
#define AW_WRAPPER_TIME64(other, name) AW_WRAPPER_ALIAS(other, name)
#else
#define AW_WRAPPER_TIME64(other, name) _Static_assert(true, "no such name here")
#endif

#endif
