// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrapper: connect. Other threads may use the socket while one of them is still in the call.
#include <errno.h>

#include "xsock/base/left.h"
#include "xsock/base/libc.h"
#include "xsock/base/log.h"
#include "xsock/preload/first_io.h"
#include "xsock/process/mode.h"
#include "xsock/process/watch.h"

static enum aw_xs_mode connecting_mode(int fd, const struct sockaddr *remote)
{
	struct sockaddr_storage local;
	socklen_t len = sizeof(local);
	bool asked;
	enum aw_xs_mode mode = aw_mode_asked(fd, &asked);

	if (asked)
		return mode;
	if (!aw_mode_may(false) || aw_libc()->getsockname(fd, (struct sockaddr *)&local, &len) != 0)
		return AW_XS_OFF;
	return aw_mode_connecting((struct sockaddr *)&local, remote);
}

/* A connect(2) of a thread, and its socket, which is held. */
struct call {
	int fd;
	struct aw_sock *sock;
};

/*
 * fd is CONNECTING from before the call on: another thread may learn from the server that the connection stands, and
 * use it, before the call has returned here. Whichever is first starts MPA. False: it is no candidate any more.
 */
static bool begin_connect(struct call *call, enum aw_xs_mode mode)
{
	struct aw_sock *sock;
	bool begun;

	aw_fdtab_lock();
	sock = aw_fdtab_need(call->fd);
	begun = sock && sock->state == AW_FD_CANDIDATE;
	if (begun) {
		aw_fdtab_hold(sock);
		call->sock = sock;
		sock->mode = mode;
		sock->role = AW_ROLE_ACTIVE;
		sock->caller = call;
		aw_fdtab_set_state(sock, AW_FD_CONNECTING);
	}
	aw_fdtab_unlock();
	if (!sock)
		aw_xs_log(AW_XS_LOG_ERROR, "fd %d cannot be iWARP: no room for it", call->fd);
	return begun;
}

/* It is cancelled, or left by siglongjmp. */
static void leave_connect(void *arg)
{
	struct call *call = arg;

	aw_fdtab_lock();
	call->sock->caller = NULL;
	aw_fdtab_release(call->sock);
	aw_fdtab_unlock();
}

static void settle_connect(struct aw_sock *sock, int *result, int *err)
{
	/*
	 * Another thread has started it. A call that the kernel began anew met the pair (EINVAL), and a thread that woke
	 * late found a TCP socket whose connection the proxy process had already ended in order (ECONNABORTED).
	 */
	if (*result != 0 && (*err == EINVAL || *err == ECONNABORTED) &&
	    sock->state != AW_FD_CONNECTING && sock->state != AW_FD_NONE)
		*result = 0;
	sock->connect_told = *result == 0; /* a second one does not succeed */
	if (sock->state != AW_FD_CONNECTING)
		return;
	if (*result == 0 || *err == EINPROGRESS || *err == EINTR) {
		aw_watch_widen(sock);
		return;
	}
	aw_watch_narrow(sock);
	aw_fdtab_set_state(sock, AW_FD_CANDIDATE);
}

/* Returns whether fd is still the socket that was connected: it may have been closed meanwhile. */
static bool end_connect(const struct call *call, int *result)
{
	int err = errno;
	bool ours;

	aw_fdtab_lock();
	ours = aw_fdtab_get(call->fd) == call->sock;
	call->sock->caller = NULL;
	if (call->sock->fds)
		settle_connect(call->sock, result, &err);
	aw_fdtab_release(call->sock);
	aw_fdtab_unlock();
	errno = err;
	return ours;
}

/* The first connect after the connection stands succeeds, as TCP's does. */
static int connect_bridged(int fd)
{
	struct aw_sock *sock;
	bool told = true;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	if (sock) {
		told = sock->connect_told;
		sock->connect_told = true;
	}
	aw_fdtab_unlock();
	if (!told)
		return 0;
	errno = EISCONN;
	return -1;
}

/* Of what has been connected before, or is of no interest. */
static int connect_again(int fd, const struct sockaddr *addr, socklen_t len)
{
	int result;

	switch (aw_fdtab_state(fd)) {
	case AW_FD_NONE:
	case AW_FD_CANDIDATE:
	case AW_FD_LISTENER:
	case AW_FD_INTERNAL:
		break;
	case AW_FD_BRIDGED:
	case AW_FD_FRAMED:
		return connect_bridged(fd);
	case AW_FD_CONNECTING:
		result = aw_libc()->connect(fd, addr, len);
		if (result == 0)
			return aw_first_io_slow(fd, AW_FIRST_WRITE, false);
		if (errno == EINVAL && aw_fdtab_is_paired(fd))
			return connect_bridged(fd);
		return result;
	case AW_FD_PENDING:
	case AW_FD_STARTING:
		errno = EISCONN;
		return -1;
	}
	return aw_libc()->connect(fd, addr, len);
}

/* A blocking connect that is over starts MPA here; any other one when the program looks at it. */
static int connect_first(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct _pthread_cleanup_buffer left;
	struct call call = { .fd = fd };
	enum aw_xs_mode mode;
	bool ours;
	int result;

	if (!addr || len < sizeof(sa_family_t) ||
	    (addr->sa_family != AF_INET && addr->sa_family != AF_INET6))
		return aw_libc()->connect(fd, addr, len);
	mode = connecting_mode(fd, addr);
	if (mode == AW_XS_OFF)
		return aw_libc()->connect(fd, addr, len);
	if (!begin_connect(&call, mode))
		return connect_again(fd, addr, len);
	aw_left_push(&left, leave_connect, &call);
	result = aw_libc()->connect(fd, addr, len);
	aw_left_pop(&left, 0);
	ours = end_connect(&call, &result);
	if (result == 0 && ours)
		return aw_first_io_slow(fd, AW_FIRST_WRITE, false);
	return result;
}

AW_WRAPPER int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	if (aw_fdtab_state(fd) == AW_FD_CANDIDATE)
		return connect_first(fd, addr, len);
	return connect_again(fd, addr, len);
}
