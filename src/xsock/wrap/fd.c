// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: the calls that duplicate and close fds, fcntl and ioctl. The table follows them, and
// the library's own fds stay open.
#include <errno.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/preload/end.h"
#include "xsock/preload/extended.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/settle.h"
#include "xsock/process/memory.h"
#include "xsock/process/proxy.h"
#include "xsock/wrap/wrap.h"

/* Makes fd leave the table before a close. lingers: SO_LINGER may make the close wait. */
static void leave_table(int fd, bool lingers)
{
	aw_settle_before_close(fd);
	aw_framed_closing(fd);
	/* A library may close a plain fd under a lock that a fork takes behind the table's. */
	if (aw_fdtab_state(fd) == AW_FD_NONE)
		return;
	aw_extended_closing(fd);
	if (lingers && aw_end_is_bridged(fd))
		aw_option_linger(fd);
	aw_fdtab_forget(fd);
}

AW_WRAPPER int close(int fd)
{
	if (aw_fdtab_state(fd) == AW_FD_INTERNAL)
		return aw_fail_with(EBADF);
	leave_table(fd, true);
	return aw_libc()->close(fd);
}
AW_WRAPPER_ALIAS(__close, close);

AW_WRAPPER int fclose(FILE *file)
{
	int fd = fileno(file);

	if (aw_fdtab_state(fd) != AW_FD_INTERNAL)
		leave_table(fd, true);
	return aw_libc()->fclose(file);
}
AW_WRAPPER_ALIAS(_IO_fclose, fclose);

/*
 * Returns the first of the library's own fds from first to last, or last + 1 if there is none:
 * those of the proxy process and of the arena.
 */
static unsigned next_hidden(unsigned first, unsigned last)
{
	unsigned control = (unsigned)aw_proxy_control();

	if (aw_arena_fd() < 0)
		return control >= first && control <= last ? control : last + 1;
	for (unsigned fd = first; fd <= last && fd < AW_FDTAB_MAX; fd++)
		if (aw_fdtab_state((int)fd) == AW_FD_INTERNAL)
			return fd;
	return last + 1;
}

/* Closes the fds from first to last except the library's own. */
static int close_around(unsigned first, unsigned last, int flags)
{
	unsigned hidden = next_hidden(first, last);

	while (hidden != last + 1) {
		if (hidden > first && aw_libc()->close_range(first, hidden - 1, flags) != 0)
			return -1;
		if (hidden == last)
			return 0;
		first = hidden + 1;
		hidden = next_hidden(first, last);
	}
	return aw_libc()->close_range(first, last, flags);
}

static void leave_table_range(unsigned first, unsigned last)
{
	unsigned end = aw_fdtab_end();

	for (unsigned fd = first; fd <= last && fd < end; fd++)
		if (aw_fdtab_state((int)fd) != AW_FD_INTERNAL)
			leave_table((int)fd, false);
}

/*
 * The table forgets the fds before the call, as with close, because afterwards another thread's new
 * fds may have the same numbers. The kernel checks the flags first.
 */
AW_WRAPPER int close_range(unsigned first, unsigned last, int flags)
{
	if (flags & CLOSE_RANGE_CLOEXEC)
		return close_around(first, last, flags);
	if (aw_libc()->close_range(UINT_MAX, UINT_MAX, flags) != 0)
		return -1;
	if (first > last)
		return aw_libc()->close_range(first, last, flags);
	leave_table_range(first, last);
	return close_around(first, last, flags);
}

AW_WRAPPER void closefrom(int first)
{
	unsigned from = first < 0 ? 0 : (unsigned)first;

	leave_table_range(from, UINT_MAX);
	if (aw_proxy_control() < 0 && aw_arena_fd() < 0)
		aw_libc()->closefrom(first);
	else
		close_around(from, UINT_MAX, 0);
}

/* Adds to, a duplicate of fd or -1, to the table, and gives fd's pin back. Returns to. */
static int add_duplicate(int fd, int to, struct aw_sock *pin)
{
	if (to >= 0)
		aw_fdtab_copy(fd, to);
	aw_first_io_unpin(pin);
	aw_first_io_for_stdio(to);
	return to;
}

AW_WRAPPER int dup(int fd)
{
	struct aw_sock *pin = aw_first_io_pin(fd);

	return add_duplicate(fd, aw_libc()->dup(fd), pin);
}

static void prepare_dup(int fd, int new)
{
	if (fd == new)
		return;
	aw_proxy_free_fd(new);
	aw_settle_before_close(new);
	aw_framed_closing(new);
	aw_extended_closing(new);
}

AW_WRAPPER int dup2(int fd, int new)
{
	struct aw_sock *pin;

	prepare_dup(fd, new);
	pin = aw_first_io_pin(fd);
	return add_duplicate(fd, aw_libc()->dup2(fd, new), pin);
}
AW_WRAPPER_ALIAS(__dup2, dup2);

AW_WRAPPER int dup3(int fd, int new, int flags)
{
	struct aw_sock *pin;

	prepare_dup(fd, new);
	pin = aw_first_io_pin(fd);
	return add_duplicate(fd, aw_libc()->dup3(fd, new, flags), pin);
}

typedef int fcntl_fn(int fd, int cmd, ...);

/* Every command's argument is an int or a pointer, and comes in a register. */
static int call_fcntl(fcntl_fn *call, int fd, int cmd, va_list args)
{
	void *arg = va_arg(args, void *);
	struct aw_sock *pin = aw_first_io_pin(fd);
	int result = call(fd, cmd, arg);

	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC)
		return add_duplicate(fd, result, pin);
	aw_first_io_unpin(pin);
	return result;
}

AW_WRAPPER int fcntl(int fd, int cmd, ...)
{
	va_list args;
	int result;

	va_start(args, cmd);
	result = call_fcntl(aw_libc()->fcntl, fd, cmd, args);
	va_end(args);
	return result;
}
AW_WRAPPER_ALIAS(__fcntl, fcntl);

AW_WRAPPER int fcntl64(int fd, int cmd, ...)
{
	va_list args;
	int result;

	va_start(args, cmd);
	result = call_fcntl(aw_libc()->fcntl64, fd, cmd, args);
	va_end(args);
	return result;
}
AW_WRAPPER_TIME64(__fcntl_time64, fcntl64);

/*
 * FIONREAD of TCP counts the bytes up to the urgent mark, that of AF_UNIX those beyond it, too. A
 * peek stops at the mark, and its length is TCP's answer. The program's int may be unaligned:
 * Python's is.
 */
static void count_to_mark(int fd, void *value)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLPRI };
	int count;
	void *bytes;
	size_t len;
	ssize_t got;

	memcpy(&count, value, sizeof(count));
	if (count <= 0 || aw_libc()->poll(&pollfd, 1, 0) <= 0 || !(pollfd.revents & POLLPRI) ||
	    aw_sockopt_int(fd, SOL_SOCKET, SO_OOBINLINE, 1))
		return;
	len = (size_t)count;
	bytes = aw_memory_map(len);
	if (!bytes)
		return;
	got = aw_libc()->recv(fd, bytes, len, MSG_PEEK | MSG_DONTWAIT);
	count = (int)got;
	if (got >= 0)
		memcpy(value, &count, sizeof(count));
	aw_memory_unmap(bytes, len);
}

/* FIONREAD and SIOCATMARK make the first I/O, because the unread bytes may be the MPA Request. */
AW_WRAPPER int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;
	struct aw_sock *pin;
	int result, value;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if ((request == FIONREAD || request == SIOCATMARK) && aw_first_io(fd, AW_FIRST_POLL, true))
		return -1;
	/* No bytes have come; the next ones may be the MPA Request. */
	if (request == FIONREAD && aw_fdtab_state(fd) == AW_FD_PENDING) {
		memcpy(arg, &(int){ 0 }, sizeof(int));
		return 0;
	}
	if ((request == FIONREAD && aw_framed_pending(fd, &value)) ||
	    (request == SIOCATMARK && aw_framed_is_at_mark(fd, &value))) {
		memcpy(arg, &value, sizeof(value));
		return 0;
	}
	if (request == FIONREAD)
		aw_extended_watch_bridged(fd);
	pin = aw_first_io_pin(fd);
	result = aw_libc()->ioctl(fd, request, arg);
	aw_first_io_unpin(pin);
	if (result == 0 && request == FIONREAD && aw_fdtab_state(fd) == AW_FD_BRIDGED)
		count_to_mark(fd, arg);
	return result;
}
AW_WRAPPER_TIME64(__ioctl_time64, ioctl);
