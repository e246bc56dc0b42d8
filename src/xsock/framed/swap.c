// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The swap. The new file gets what the program has set on the old one (process/twin.h).
#include "xsock/framed/swap.h"

#include <errno.h>
#include <netinet/tcp.h>

#include "xsock/base/libc.h"
#include "xsock/framed/arena.h"
#include "xsock/framed/bridged.h"
#include "xsock/process/name.h"
#include "xsock/process/proxy.h"
#include "xsock/process/registration.h"
#include "xsock/process/twin.h"

enum {
	NEAR,
	FAR,
};

int aw_swap_to_proxy(struct aw_sock *sock, int fd, int far, int near)
{
	int nodelay = 0, fds[] = { fd, far, near }, err;
	socklen_t len = sizeof(nodelay);
	struct aw_request request;

	aw_request_init(&request, AW_REQUEST_START);
	aw_libc()->getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &nodelay, &len);
	request.role = (uint8_t)sock->role;
	request.mode = (uint8_t)sock->mode;
	request.nodelay = nodelay != 0;
	request.fd = fd;
	err = aw_proxy_notify(&request, fds, 3);
	sock->proxy = aw_proxy_id();
	return err;
}

static int make_pair(struct aw_sock *sock, int fd, int ends[2], struct stat *file)
{
	socklen_t local_len = sizeof(sock->local), remote_len = sizeof(sock->remote),
		  len = sizeof(sock->linger);

	if (aw_libc()->getsockname(fd, (struct sockaddr *)&sock->local, &local_len) != 0)
		return errno;
	/*
	 * The kernel loses the peer's address when a connection ends; a record may still report that end, and its address then has
	 * a family alone.
	 */
	if (aw_libc()->getpeername(fd, (struct sockaddr *)&sock->remote, &remote_len) != 0) {
		sock->remote.any.sa_family = sock->local.any.sa_family;
		if (!sock->slot)
			return errno;
	}
	if (aw_libc()->socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return errno;
	fstat(ends[NEAR], file);
	if (!sock->slot || !aw_bridged_get_linger(sock->slot, &sock->linger))
		aw_libc()->getsockopt(fd, SOL_SOCKET, SO_LINGER, &sock->linger, &len);
	aw_twin_copy(fd, ends[NEAR], sock->slot && !aw_arena_is_alone(sock->slot));
	aw_name_bind(ends[NEAR], sock, file->st_ino);
	return 0;
}

static void close_pair(const int ends[2])
{
	aw_libc()->close(ends[NEAR]);
	aw_libc()->close(ends[FAR]);
}

int aw_swap_socket(struct aw_sock *sock, int fd, aw_swap_export *export_fn)
{
	struct stat file;
	int ends[2], err = make_pair(sock, fd, ends, &file);

	if (err)
		return err;
	err = export_fn(sock, fd, ends[FAR], ends[NEAR]);
	if (!err && fstat(ends[NEAR], &file) != 0)
		err = errno;
	if (!err) {
		aw_fdtab_lock();
		aw_registration_swap_all(sock, ends[NEAR], &file);
		aw_fdtab_set_state(sock, AW_FD_BRIDGED);
		aw_fdtab_unlock();
	}
	close_pair(ends);
	return err;
}

int aw_swap_copy(struct aw_sock *own, int fd, aw_swap_export *export_fn)
{
	int ends[2], flags = aw_libc()->fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0, err;
	struct stat file;

	err = make_pair(own, fd, ends, &file);
	if (err)
		return err;
	err = export_fn(own, fd, ends[FAR], ends[NEAR]);
	if (!err && aw_libc()->dup3(ends[NEAR], fd, flags) < 0)
		err = errno;
	close_pair(ends);
	return err;
}
