// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrappers: how fds are duplicated and closed. The table follows; the keeper's fd is kept from harm.
#include <errno.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "xsock/preload/keeper.h"
#include "xsock/preload/libc.h"
#include "xsock/preload/option.h"
#include "xsock/preload/touch.h"

static bool is_aborted(int fd)
{
	struct linger linger = { 0 };
	socklen_t len = sizeof(linger);

	return aw_libc()->getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len) == 0 &&
	       linger.l_onoff && !linger.l_linger;
}

/* The peer's MPA Request, left unread in a socket that is closed, would make its end a reset. */
static void answer_first(int fd)
{
	int saved = errno;

	if (aw_fdtab_state(fd) == AW_FD_PENDING && !is_aborted(fd))
		(void)aw_touch_slow(fd, AW_TOUCH_WRITE, true);
	errno = saved;
}

/* False: the program does not know this fd. */
static bool leave(int fd)
{
	answer_first(fd);
	switch (aw_fdtab_state(fd)) {
	case AW_FD_NONE:
		return true;
	case AW_FD_INTERNAL:
		errno = EBADF;
		return false;
	case AW_FD_BRIDGED:
		aw_option_linger(fd);
		aw_fdtab_forget(fd);
		return true;
	case AW_FD_CANDIDATE:
	case AW_FD_LISTENER:
	case AW_FD_CONNECTING:
	case AW_FD_PENDING:
	case AW_FD_STARTING:
		aw_fdtab_forget(fd);
		return true;
	}
	return true;
}

AW_WRAPPER int close(int fd)
{
	return leave(fd) ? aw_libc()->close(fd) : -1;
}

AW_WRAPPER int fclose(FILE *file)
{
	int fd = file ? fileno(file) : -1;

	if (fd >= 0)
		leave(fd);
	return aw_libc()->fclose(file);
}

/* All but the keeper's fd. */
static int close_around(unsigned first, unsigned last, int flags)
{
	int hidden = aw_keeper_control();

	if (hidden < 0 || (unsigned)hidden < first || (unsigned)hidden > last)
		return aw_libc()->close_range(first, last, flags);
	if ((unsigned)hidden > first &&
	    aw_libc()->close_range(first, (unsigned)hidden - 1, flags) != 0)
		return -1;
	if ((unsigned)hidden == last)
		return 0;
	return aw_libc()->close_range((unsigned)hidden + 1, last, flags);
}

AW_WRAPPER int close_range(unsigned first, unsigned last, int flags)
{
	int result = close_around(first, last, flags);

	if (result == 0 && !(flags & CLOSE_RANGE_CLOEXEC))
		aw_fdtab_forget_range(first, last);
	return result;
}

AW_WRAPPER void closefrom(int first)
{
	unsigned from = first < 0 ? 0 : (unsigned)first;

	if (aw_keeper_control() < 0)
		aw_libc()->closefrom(first);
	else
		close_around(from, UINT_MAX, 0);
	aw_fdtab_forget_range(from, UINT_MAX);
}

AW_WRAPPER int dup(int fd)
{
	int new = aw_libc()->dup(fd);

	if (new >= 0)
		aw_fdtab_copy(fd, new);
	return new;
}

AW_WRAPPER int dup2(int fd, int new)
{
	int result;

	if (fd != new)
		aw_keeper_evade(new);
	result = aw_libc()->dup2(fd, new);
	if (result >= 0)
		aw_fdtab_copy(fd, new);
	return result;
}

AW_WRAPPER int dup3(int fd, int new, int flags)
{
	int result;

	if (fd != new)
		aw_keeper_evade(new);
	result = aw_libc()->dup3(fd, new, flags);
	if (result >= 0)
		aw_fdtab_copy(fd, new);
	return result;
}

/* Every command's argument is an int or a pointer: a register either way. */
AW_WRAPPER int fcntl(int fd, int cmd, ...)
{
	va_list args;
	void *arg;
	int result;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	result = aw_libc()->fcntl(fd, cmd, arg);
	if (result >= 0 && (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC))
		aw_fdtab_copy(fd, result);
	return result;
}

AW_WRAPPER int fcntl64(int fd, int cmd, ...)
{
	va_list args;
	void *arg;
	int result;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	result = aw_libc()->fcntl64(fd, cmd, arg);
	if (result >= 0 && (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC))
		aw_fdtab_copy(fd, result);
	return result;
}

/* TCP counts as far as the urgent mark, AF_UNIX beyond; a peek stops where a read would. */
static void count_to_mark(int fd, int *count)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLPRI };
	socklen_t len = sizeof(int);
	int in_line = 0;
	void *octets;
	ssize_t got;

	if (*count <= 0 || aw_libc()->poll(&pollfd, 1, 0) <= 0 || !(pollfd.revents & POLLPRI) ||
	    aw_libc()->getsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &in_line, &len) != 0 || in_line)
		return;
	octets = malloc((size_t)*count);
	if (!octets)
		return;
	got = aw_libc()->recv(fd, octets, (size_t)*count, MSG_PEEK | MSG_DONTWAIT);
	if (got >= 0)
		*count = (int)got;
	free(octets);
}

/* How many octets there are to read is known once it is known what they are. */
AW_WRAPPER int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;
	int result;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if ((request == FIONREAD || request == SIOCATMARK) && aw_touch(fd, AW_TOUCH_POLL, true))
		return -1;
	result = aw_libc()->ioctl(fd, request, arg);
	if (result == 0 && request == FIONREAD && aw_fdtab_state(fd) == AW_FD_BRIDGED)
		count_to_mark(fd, arg);
	return result;
}
