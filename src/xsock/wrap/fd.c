// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: the calls that duplicate and close fds, fcntl and ioctl. The table follows them, and
// the library's own fds stay open.
#include <errno.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/framed/framed.h"
#include "xsock/preload/end.h"
#include "xsock/preload/extended.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/settle.h"
#include "xsock/process/memory.h"
#include "xsock/process/proxy.h"
#include "xsock/process/shield.h"

/* Prepares fd's socket for the end of this number of it. lingers: SO_LINGER may make the close wait. */
static void prepare_leave(int fd, bool lingers)
{
	aw_settle_before_close(fd);
	aw_framed_closing(fd);
	/* A library may close a plain fd under a lock that a fork takes behind the table's. */
	if (aw_fdtab_state(fd) == AW_FD_NONE)
		return;
	aw_extended_closing(fd);
	if (lingers && aw_end_is_bridged(fd))
		aw_option_linger(fd);
}

/* A change, under a shield: a signal handler of this thread, which may use the number, would wait for the change's end. */
struct shielded_change {
	struct aw_change change;
	struct aw_shield shield;
	bool is_shielded;
};

static void begin_change(struct shielded_change *own, int fd, int from)
{
	own->is_shielded = aw_fdtab_state(fd) != AW_FD_NONE || aw_fdtab_state(from) != AW_FD_NONE;
	if (own->is_shielded)
		aw_shield_raise(&own->shield);
	aw_fdtab_begin_change(&own->change, fd, from);
}

static int end_change(struct shielded_change *own, int result)
{
	(void)aw_fdtab_end_change(&own->change, result);
	if (own->is_shielded)
		aw_shield_lower(&own->shield);
	return result;
}

static int close_number(int fd, bool lingers)
{
	struct shielded_change own;
	int result;

	prepare_leave(fd, lingers);
	begin_change(&own, fd, -1);
	result = aw_libc()->close(fd);
	(void)end_change(&own, 0); /* the number is free whatever close(2) returns */
	return result;
}

AW_WRAPPER int close(int fd)
{
	return aw_fdtab_state(fd) == AW_FD_INTERNAL ? aw_fail_with(EBADF) : close_number(fd, true);
}
AW_WRAPPER_ALIAS(__close, close);

/* stdio closes the number inside libc. The bytes that it has yet to write go out before, while other threads may use the connection. */
static void begin_stdio(struct shielded_change *own, FILE *file)
{
	int fd = file ? fileno(file) : -1;

	if (aw_fdtab_state(fd) == AW_FD_INTERNAL)
		fd = -1;
	if (aw_fdtab_state(fd) != AW_FD_NONE)
		(void)fflush(file);
	prepare_leave(fd, true);
	begin_change(own, fd, -1);
}

AW_WRAPPER int fclose(FILE *file)
{
	struct shielded_change own;
	int result;

	begin_stdio(&own, file);
	result = aw_libc()->fclose(file);
	(void)end_change(&own, 0);
	return result;
}
AW_WRAPPER_ALIAS(_IO_fclose, fclose);

AW_WRAPPER FILE *freopen(const char *path, const char *mode, FILE *file)
{
	struct shielded_change own;

	begin_stdio(&own, file);
	file = aw_libc()->freopen(path, mode, file);
	(void)end_change(&own, 0);
	return file;
}

AW_WRAPPER FILE *freopen64(const char *path, const char *mode, FILE *file)
{
	struct shielded_change own;

	begin_stdio(&own, file);
	file = aw_libc()->freopen64(path, mode, file);
	(void)end_change(&own, 0);
	return file;
}

/* Returns the first of the library's own fds from first to last, or last + 1 if there is none. */
static unsigned next_hidden(unsigned first, unsigned last)
{
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

/* Closes those fds that the table knows, one by one: other threads may be in their records. */
static void close_known(unsigned first, unsigned last)
{
	unsigned end = aw_fdtab_end();

	for (unsigned fd = first; fd <= last && fd < end; fd++)
		if (aw_fdtab_state((int)fd) != AW_FD_INTERNAL &&
		    aw_fdtab_state((int)fd) != AW_FD_NONE)
			(void)close_number((int)fd, false);
}

/* The kernel checks the flags first, and gives this process a table of its own if they say so. */
AW_WRAPPER int close_range(unsigned first, unsigned last, int flags)
{
	if (flags & CLOSE_RANGE_CLOEXEC)
		return close_around(first, last, flags);
	if (aw_libc()->close_range(UINT_MAX, UINT_MAX, flags) != 0)
		return -1;
	if (first > last)
		return aw_libc()->close_range(first, last, flags);
	close_known(first, last);
	return close_around(first, last, flags);
}

AW_WRAPPER void closefrom(int first)
{
	unsigned from = first < 0 ? 0 : (unsigned)first;

	close_known(from, UINT_MAX);
	close_around(from, UINT_MAX, 0);
}

/* Ends a call that has made result a duplicate, or has failed. Returns result. */
static int end_duplicate(struct shielded_change *own, int result)
{
	(void)end_change(own, result);
	aw_first_io_for_stdio(result);
	return result;
}

AW_WRAPPER int dup(int fd)
{
	struct shielded_change own;

	begin_change(&own, -1, fd);
	return end_duplicate(&own, aw_libc()->dup(fd));
}

/* Nothing changes where the call fails, for want of fd. */
static void begin_replace(struct shielded_change *own, int fd, int new)
{
	own->change = (struct aw_change){ .fd = new };
	own->is_shielded = false;
	if (fd == new || (aw_fdtab_state(new) != AW_FD_NONE && aw_libc()->fcntl(fd, F_GETFD) < 0))
		return;
	aw_proxy_free_fd(new);
	prepare_leave(new, true);
	begin_change(own, new, fd);
}

AW_WRAPPER int dup2(int fd, int new)
{
	struct shielded_change own;

	begin_replace(&own, fd, new);
	return end_duplicate(&own, aw_libc()->dup2(fd, new));
}
AW_WRAPPER_ALIAS(__dup2, dup2);

AW_WRAPPER int dup3(int fd, int new, int flags)
{
	struct shielded_change own;

	begin_replace(&own, fd, new);
	return end_duplicate(&own, aw_libc()->dup3(fd, new, flags));
}

typedef int fcntl_fn(int fd, int cmd, ...);

/* Every command's argument is an int or a pointer, and comes in a register. */
static int call_fcntl(fcntl_fn *call, int fd, int cmd, va_list args)
{
	void *arg = va_arg(args, void *);
	struct shielded_change own;
	struct aw_sock *pin;
	int result;

	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC) {
		begin_change(&own, -1, fd);
		return end_duplicate(&own, call(fd, cmd, arg));
	}
	pin = aw_first_io_pin(fd);
	result = call(fd, cmd, arg);
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
	struct aw_sock sock, *pin;
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
	/* The peer's kernel has all that was written to a pair, as if TCP's peer had acknowledged it. */
	if ((request == SIOCOUTQ || request == SIOCOUTQNSD) && aw_end_is_bridged(fd) &&
	    aw_fdtab_look(fd, &sock) && sock.is_pair) {
		memcpy(arg, &(int){ 0 }, sizeof(int));
		return 0;
	}
	pin = aw_first_io_pin(fd);
	result = aw_libc()->ioctl(fd, request, arg);
	aw_first_io_unpin(pin);
	if (result == 0 && request == FIONREAD && aw_fdtab_state(fd) == AW_FD_BRIDGED)
		count_to_mark(fd, arg);
	return result;
}
AW_WRAPPER_TIME64(__ioctl_time64, ioctl);
