// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The swap of a number from TCP to the pair.
#include "xsock/pair/place.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"
#include "xsock/base/libc.h"
#include "xsock/process/name.h"
#include "xsock/process/proxy.h"
#include "xsock/process/registration.h"
#include "xsock/process/twin.h"

/* A program of which half of the numbers are in use may need the other half. */
int aw_place_reserve(int fd)
{
	struct rlimit limit;

	if (fd >= AW_FDTAB_MAX || getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
	    (rlim_t)fd >= limit.rlim_cur / 2)
		return -1;
	return aw_proxy_copy_high(fd);
}

static void read_names(int tcp, struct aw_sock *sock)
{
	socklen_t local_len = sizeof(sock->local), remote_len = sizeof(sock->remote);

	(void)aw_libc()->getsockname(tcp, (struct sockaddr *)&sock->local, &local_len);
	(void)aw_libc()->getpeername(tcp, (struct sockaddr *)&sock->remote, &remote_len);
}

static void read_linger(int tcp, struct aw_sock *sock)
{
	socklen_t len = sizeof(sock->linger);

	(void)aw_libc()->getsockopt(tcp, SOL_SOCKET, SO_LINGER, &sock->linger, &len);
}

void aw_place_connected(struct aw_sock *sock, int fd, int near, int beside)
{
	struct stat file = { 0 };

	(void)fstat(near, &file);
	aw_twin_copy(fd, near, true);
	aw_fdtab_lock();
	read_names(beside, sock);
	read_linger(beside, sock);
	for (int each = aw_fdtab_next_fd(sock, -1); each >= 0; each = aw_fdtab_next_fd(sock, each))
		if (aw_registration_swap(sock, each, near) != 0)
			aw_log(AW_LOG_ERROR, "cannot replace fd %d: %s", each, strerror(errno));
	sock->dev = file.st_dev;
	sock->ino = file.st_ino;
	sock->is_pair = true;
	aw_fdtab_set_beside(sock, beside);
	aw_fdtab_set_state(sock, AW_FD_BRIDGED);
	aw_fdtab_unlock();
	aw_libc()->close(near);
}

void aw_place_accepted(int fd, int near, int beside)
{
	struct aw_sock like = { .state = AW_FD_BRIDGED,
				.mode = AW_XS_AUTO,
				.role = AW_ROLE_PASSIVE,
				.is_pair = true,
				.beside = beside };
	int flags = aw_libc()->fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0;

	aw_twin_copy(fd, near, true);
	read_names(beside, &like);
	read_linger(beside, &like);
	if (aw_libc()->dup3(near, fd, flags) < 0)
		aw_log(AW_LOG_ERROR, "cannot replace fd %d: %s", fd, strerror(errno));
	aw_libc()->close(near);
	if (!aw_fdtab_add(fd, &like))
		aw_libc()->close(beside);
}

bool aw_place_use_tcp(int fd, aw_place_use *use, void *arg)
{
	struct aw_sock *sock;
	int tcp;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	tcp = sock && sock->is_pair ? aw_fdtab_beside(sock) : 0;
	if (tcp)
		use(tcp, arg);
	aw_fdtab_unlock();
	return tcp;
}
