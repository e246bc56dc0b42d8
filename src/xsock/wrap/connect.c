// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Wrapper: connect. Another thread may use the socket while this one is still in the call.
#include <errno.h>
#include <netinet/tcp.h>

#include "xsock/base/left.h"
#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/framed/framed.h"
#include "xsock/framed/refusal.h"
#include "xsock/pair/offer.h"
#include "xsock/pair/plain_note.h"
#include "xsock/preload/first_io.h"
#include "xsock/process/mode.h"
#include "xsock/process/protect.h"
#include "xsock/process/registration.h"

/* A call of connect(2), and its socket, which is held. */
struct connect_call {
	int fd;
	struct aw_sock *sock;
};

/*
 * Makes fd CONNECTING before libc's connect is called, because another thread may learn from the
 * server that the connection exists, and use it, before the call has returned. The first of the two
 * starts MPA. False: fd is no candidate any more, or not in mode `on`.
 */
static bool begin_connect(struct connect_call *call, enum aw_xs_mode mode)
{
	struct aw_sock *sock;
	bool begun;

	aw_fdtab_lock();
	sock = aw_fdtab_get(call->fd);
	if (!sock && aw_xs_mode_is_carried(mode)) {
		sock = aw_fdtab_get_or_add(call->fd);
		if (!sock)
			aw_fdtab_log_left_out(call->fd, aw_protect_is_on());
	}
	begun = sock && sock->state == AW_FD_CANDIDATE && aw_xs_mode_is_carried(mode);
	if (begun) {
		aw_fdtab_hold(sock);
		call->sock = sock;
		sock->mode = mode;
		sock->role = AW_ROLE_ACTIVE;
		sock->caller = call;
		aw_fdtab_set_state(sock, AW_FD_CONNECTING);
	}
	aw_fdtab_unlock();
	return begun;
}

/* Runs when the thread is cancelled, or leaves the call by siglongjmp. */
static void leave_connect(void *arg)
{
	struct connect_call *call = arg;

	aw_fdtab_lock();
	call->sock->caller = NULL;
	aw_fdtab_release(call->sock);
	aw_fdtab_unlock();
}

static int refuse_connect(const struct connect_call *call)
{
	aw_fdtab_lock();
	call->sock->caller = NULL;
	if (call->sock->fds && call->sock->state == AW_FD_CONNECTING)
		aw_fdtab_set_state(call->sock, AW_FD_CANDIDATE);
	aw_fdtab_release(call->sock);
	aw_fdtab_unlock();
	return aw_fail_with(EPROTONOSUPPORT);
}

/*
 * Ends the call; may turn an error into success. Returns whether fd is still the socket that was connected: another thread may have
 * closed it.
 */
static bool end_connect(const struct connect_call *call, int *result)
{
	struct aw_sock *sock = call->sock;
	int err = errno;
	bool ours;

	aw_fdtab_lock();
	ours = aw_fdtab_get(call->fd) == sock;
	sock->caller = NULL;
	/*
	 * Another thread may have started the connection: then the call has succeeded. If the kernel has restarted the call, it has met the
	 * pair (EINVAL). If the thread woke late, the proxy process may have ended the TCP connection in order by then (ECONNABORTED).
	 */
	if (sock->fds) {
		if (*result != 0 && (err == EINVAL || err == ECONNABORTED) &&
		    sock->state != AW_FD_CONNECTING && sock->state != AW_FD_NONE)
			*result = 0;
		sock->connect_reported = *result == 0; /* a second connect fails with EISCONN */
	}
	if (sock->fds && sock->state == AW_FD_CONNECTING) {
		if (*result == 0 || err == EINPROGRESS || err == EINTR) {
			aw_registration_widen(sock);
		} else {
			aw_registration_narrow(sock);
			aw_fdtab_set_state(sock, AW_FD_CANDIDATE);
		}
	}
	aw_fdtab_release(sock);
	aw_fdtab_unlock();
	errno = err;
	return ours;
}

/*
 * The first connect after the connection is made succeeds, as with TCP; later ones fail with
 * EISCONN.
 */
static int connect_bridged(int fd)
{
	struct aw_sock *sock;
	bool reported = true;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	if (sock) {
		reported = sock->connect_reported || sock->role == AW_ROLE_PASSIVE;
		sock->connect_reported = true;
	}
	aw_fdtab_unlock();
	if (!reported)
		return 0;
	return aw_fail_with(EISCONN);
}

/* Calls libc's connect. Another thread may make a pair of fd before the kernel looks. */
static int connect_or_pair(int fd, const struct sockaddr *addr, socklen_t len)
{
	int result = aw_libc()->connect(fd, addr, len);

	if (result != 0 && errno == EINVAL && aw_fdtab_is_paired(fd))
		return connect_bridged(fd);
	return result;
}

/* Calls connect for an fd that is no candidate, or gets no offer. */
static int connect_again(int fd, const struct sockaddr *addr, socklen_t len)
{
	int result;

	aw_fdtab_await_left(fd);
	switch (aw_fdtab_state(fd)) {
	case AW_FD_NONE:
	case AW_FD_CANDIDATE:
	case AW_FD_LISTENER:
	case AW_FD_INTERNAL:
	case AW_FD_LEAVING:
		break;
	case AW_FD_BRIDGED:
	case AW_FD_FRAMED:
		return connect_bridged(fd);
	case AW_FD_CONNECTING:
		result = connect_or_pair(fd, addr, len);
		return result ? result : aw_first_io_connected(fd);
	case AW_FD_PENDING:
		return connect_bridged(fd);
	case AW_FD_STARTING:
		return aw_fail_with(EISCONN);
	}
	return connect_or_pair(fd, addr, len);
}

/* Returns whether the table has no socket for fd, which would go on as plain TCP. */
static bool is_left_out(int fd)
{
	enum aw_fd_state state = aw_fdtab_state(fd);

	return state == AW_FD_NONE || state == AW_FD_CANDIDATE;
}

/*
 * Calls connect for a candidate. If the call has connected fd, MPA starts here; otherwise at the
 * program's next call on fd.
 */
static int connect_first(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct _pthread_cleanup_buffer left;
	struct connect_call call = { .fd = fd };
	enum aw_plain why = AW_PLAIN_NOT;
	enum aw_xs_mode mode;
	bool ours;
	int result, off = 0;

	if (!addr || len < sizeof(sa_family_t) ||
	    (addr->sa_family != AF_INET && addr->sa_family != AF_INET6))
		return aw_libc()->connect(fd, addr, len);
	mode = aw_mode_of_connect(fd, addr);
	if (mode == AW_XS_AUTO) {
		why = aw_offer_connect(fd, addr, len, &result);
		if (!why)
			return result;
	} else if (mode == AW_XS_OFF && aw_mode_may_connect()) {
		why = AW_PLAIN_OFF;
	}
	if (!begin_connect(&call, mode)) {
		if (aw_protect_is_on() && aw_xs_mode_is_carried(mode) && is_left_out(fd))
			return aw_fail_with(ENOBUFS);
		result = connect_again(fd, addr, len);
		aw_plain_note_connect(fd, addr, why, result);
		return result;
	}
	if (aw_refusal_is_due_to_mptcp(fd))
		return refuse_connect(&call);
	/* A connect that only notes the address would leave the first bytes to TCP. */
	if (aw_sockopt_int(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 0))
		(void)aw_libc()->setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &off,
					    sizeof(off));
	aw_left_push(&left, leave_connect, &call);
	result = aw_libc()->connect(fd, addr, len);
	aw_left_pop(&left, 0);
	ours = end_connect(&call, &result);
	if (result == 0 && ours)
		return aw_first_io_connected(fd);
	return result;
}

AW_WRAPPER int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	if (aw_fdtab_state(fd) == AW_FD_CANDIDATE || aw_protect_covers(fd))
		return connect_first(fd, addr, len);
	return connect_again(fd, addr, len);
}
AW_WRAPPER_ALIAS(__connect, connect);
