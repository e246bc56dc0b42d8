// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tells each end once, as TCP does.
#include "xsock/pair/end.h"

#include <errno.h>
#include <netinet/tcp.h>

#include "xsock/base/sockopt.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/sandbox.h"

/* Locks the table. Returns fd's socket if that is a pair. */
static struct aw_sock *lock_pair(int fd)
{
	struct aw_sock *sock;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	return sock && sock->is_pair ? sock : NULL;
}

/* Returns whether the peer has closed the pair with bytes unread, or reset the TCP socket beside it. Each is told once. */
static bool was_reset(const struct aw_sock *sock, int fd)
{
	int beside = aw_fdtab_beside(sock), near = aw_sockopt_int(fd, SOL_SOCKET, SO_ERROR, 0);

	return (beside && aw_sockopt_int(beside, SOL_SOCKET, SO_ERROR, 0)) || near;
}

/* Returns ECONNRESET, the first time that a call tells it. */
static int tell_reset(struct aw_sock *sock, int fd)
{
	bool first = !sock->reset_told;

	(void)was_reset(sock, fd);
	sock->reset_told = true;
	return first ? ECONNRESET : 0;
}

int aw_pair_end_of_read(int fd)
{
	struct aw_sock *sock = lock_pair(fd);
	int err = 0;

	if (sock && !sock->end_told && was_reset(sock, fd))
		err = tell_reset(sock, fd);
	if (sock && !err)
		sock->end_told = true;
	aw_fdtab_unlock();
	return err;
}

int aw_pair_reset(int fd)
{
	struct aw_sock *sock = lock_pair(fd);
	int err = ECONNRESET;

	if (sock)
		err = tell_reset(sock, fd);
	if (sock && sock->end_told)
		err = 0;
	aw_fdtab_unlock();
	return err;
}

int aw_pair_broken(int fd)
{
	struct aw_sock *sock = lock_pair(fd);
	int err = EPIPE;

	if (sock && !sock->shut && !sock->reset_told) {
		if (was_reset(sock, fd))
			err = sock->end_told ? EPIPE : tell_reset(sock, fd);
		else if (!sock->lost_told)
			err = 0;
		sock->lost_told = true;
	}
	aw_fdtab_unlock();
	return err;
}

int aw_pair_take_error(int fd, int near)
{
	struct aw_sock *sock = lock_pair(fd);
	int err = near;

	if (sock && (near == ECONNRESET || (!near && was_reset(sock, fd))))
		err = tell_reset(sock, fd);
	aw_fdtab_unlock();
	return err;
}

void aw_pair_note_shut(int fd)
{
	struct aw_sock *sock = lock_pair(fd);

	if (sock)
		sock->shut = true;
	aw_fdtab_unlock();
}

/* Returns whether the peer's end is the reading direction's alone, as TCP sees it. */
static bool is_half_closed(int fd)
{
	struct aw_sock *sock = lock_pair(fd);
	uint8_t state = TCP_CLOSE;
	socklen_t len = sizeof(state);
	int beside = sock && !sock->shut ? aw_fdtab_beside(sock) : 0;

	if (beside && aw_libc()->getsockopt(beside, IPPROTO_TCP, TCP_INFO, &state, &len) != 0)
		state = TCP_CLOSE;
	aw_fdtab_unlock();
	return state == TCP_CLOSE_WAIT || state == TCP_ESTABLISHED;
}

void aw_pair_hide_hangups(struct pollfd *fds, nfds_t count)
{
	int saved = errno;

	if (aw_sandbox_is_on())
		return;
	for (nfds_t i = 0; i < count; i++)
		if (fds[i].revents & POLLHUP && fds[i].revents & (POLLIN | POLLRDNORM | POLLRDHUP) &&
		    aw_fdtab_state(fds[i].fd) == AW_FD_BRIDGED && is_half_closed(fds[i].fd))
			fds[i].revents &= ~POLLHUP;
	errno = saved;
}
