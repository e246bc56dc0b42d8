// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The swap. What the program has set on the open file and on the socket goes with it.
#include "xsock/preload/swap.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>

#include "xsock/framed/framed.h"
#include "xsock/preload/keeper.h"
#include "xsock/preload/libc.h"
#include "xsock/preload/name.h"
#include "xsock/preload/say.h"
#include "xsock/preload/watch.h"

enum {
	NEAR,
	FAR,
};

static void copy_option(int from, int to, int name)
{
	uint8_t value[64];
	socklen_t len = sizeof(value);

	if (aw_libc()->getsockopt(from, SOL_SOCKET, name, value, &len) == 0)
		aw_libc()->setsockopt(to, SOL_SOCKET, name, value, len);
}

/* Flags, time-outs, and who gets SIGIO and SIGURG; the TCP socket raises none from now on. */
static void copy_file(int from, int to)
{
	static const int options[] = { SO_RCVTIMEO, SO_SNDTIMEO, SO_OOBINLINE };
	int flags = aw_libc()->fcntl(from, F_GETFL);
	struct f_owner_ex owner, nobody = { .type = F_OWNER_PID };

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		copy_option(from, to, options[i]);
	if (aw_libc()->fcntl(from, F_GETOWN_EX, &owner) == 0 && owner.pid) {
		aw_libc()->fcntl(to, F_SETOWN_EX, &owner);
		aw_libc()->fcntl(to, F_SETSIG, aw_libc()->fcntl(from, F_GETSIG));
		aw_libc()->fcntl(from, F_SETOWN_EX, &nobody);
	}
	aw_libc()->fcntl(to, F_SETFL, flags & (O_NONBLOCK | O_ASYNC));
	if (flags & O_ASYNC)
		aw_libc()->fcntl(from, F_SETFL, flags & ~O_ASYNC);
}

static bool read_names(int fd, struct sockaddr_storage *local, struct sockaddr_storage *remote)
{
	socklen_t local_len = sizeof(*local), remote_len = sizeof(*remote);

	return aw_libc()->getsockname(fd, (struct sockaddr *)local, &local_len) == 0 &&
	       aw_libc()->getpeername(fd, (struct sockaddr *)remote, &remote_len) == 0;
}

int aw_swap_to_keeper(struct aw_sock *sock, int fd, int far, int near)
{
	int nodelay = 0, fds[] = { fd, far, near }, err;
	socklen_t len = sizeof(nodelay);
	struct aw_order order;

	aw_keeper_begin(&order, AW_ORDER_START);
	aw_libc()->getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, &len);
	order.role = (uint8_t)sock->role;
	order.mode = (uint8_t)sock->mode;
	order.nodelay = nodelay != 0;
	order.records = aw_framed_is_wanted();
	order.fd = fd;
	err = aw_keeper_tell(&order, fds, 3);
	sock->keeper = aw_keeper_number();
	return err;
}

/* A number that was closed behind our back may be another file's by now. */
static bool is_still(const struct aw_sock *sock, int fd)
{
	struct stat file;

	return fstat(fd, &file) == 0 && file.st_dev == sock->dev && file.st_ino == sock->ino;
}

static void replace_everywhere(struct aw_sock *sock, int near, const struct stat *file)
{
	aw_fdtab_lock();
	aw_fdtab_await_convert();
	for (int fd = aw_fdtab_next(sock, -1); fd >= 0; fd = aw_fdtab_next(sock, fd)) {
		int err = is_still(sock, fd) ? aw_watch_swap(sock, fd, near) : 0;

		if (err)
			aw_say(AW_SAY_ERROR, "cannot replace fd %d: %s", fd, strerror(err));
	}
	sock->dev = file->st_dev;
	sock->swapped_ino = sock->ino;
	sock->ino = file->st_ino;
	aw_fdtab_set_state(sock, sock->direct ? AW_FD_DIRECT : AW_FD_BRIDGED);
	aw_fdtab_unlock();
}

int aw_swap_socket(struct aw_sock *sock, int fd, aw_swap_give *give)
{
	socklen_t len = sizeof(sock->linger);
	int ends[2], err;
	struct stat file;

	if (!read_names(fd, &sock->local, &sock->remote))
		return errno;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return errno;
	fstat(ends[NEAR], &file);
	aw_libc()->getsockopt(fd, SOL_SOCKET, SO_LINGER, &sock->linger, &len);
	copy_file(fd, ends[NEAR]);
	aw_name_bind(ends[NEAR], sock, file.st_ino);
	err = give(sock, fd, ends[FAR], ends[NEAR]);
	if (!err)
		replace_everywhere(sock, ends[NEAR], &file);
	aw_libc()->close(ends[NEAR]);
	aw_libc()->close(ends[FAR]);
	return err;
}
