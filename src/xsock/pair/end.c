// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tells each end once, as TCP does.
#include "xsock/pair/end.h"

#include <errno.h>

#include "xsock/base/sockopt.h"
#include "xsock/process/fdtab.h"

/* Locks the table. Returns fd's socket if that is a pair. */
static struct aw_sock *lock_pair(int fd) AW_ACQUIRE(aw_fdtab_mutex)
{
	struct aw_sock *sock;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	return sock && sock->is_pair ? sock : NULL;
}

/* Returns whether the peer has closed the pair with bytes unread, or reset the TCP socket beside it. Each is told once. */
static bool was_reset(const struct aw_sock *sock, int fd) AW_REQUIRES(aw_fdtab_mutex)
{
	int beside = aw_fdtab_beside(sock), near = aw_sockopt_int(fd, SOL_SOCKET, SO_ERROR, 0);

	return (beside && aw_sockopt_int(beside, SOL_SOCKET, SO_ERROR, 0)) || near;
}

/* Returns ECONNRESET, the first time that a call tells it. */
static int tell_reset(struct aw_sock *sock, int fd) AW_REQUIRES(aw_fdtab_mutex)
{
	bool first = !sock->reset_told;

	(void)was_reset(sock, fd);
	sock->reset_told = true;
	return first ? ECONNRESET : 0;
}

int aw_pair_end_of_read(int fd)
{
	struct aw_sock *sock = lock_pair(fd);
	int err = sock ? 0 : -1;

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
	int err = sock ? EPIPE : -1;

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
