// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The swap of a number from TCP to the pair.
#include "xsock/pair/place.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "xsock/base/libc.h"
#include "xsock/process/registration.h"
#include "xsock/process/twin.h"

static struct linger linger_of(int tcp)
{
	struct linger linger = { 0 };
	socklen_t len = sizeof(linger);

	(void)aw_libc()->getsockopt(tcp, SOL_SOCKET, SO_LINGER, &linger, &len);
	return linger;
}

void aw_place_connected(struct aw_sock *sock, int fd, const struct aw_pair_place *place)
{
	struct linger linger = linger_of(place->beside);
	struct stat file = { 0 };

	(void)fstat(place->near, &file);
	aw_twin_copy(fd, place->near, true);
	aw_fdtab_lock();
	aw_registration_swap_all(sock, place->near, &file);
	sock->local = place->local;
	sock->remote = place->remote;
	sock->linger = linger;
	sock->is_pair = true;
	aw_fdtab_set_beside(sock, place->beside);
	aw_fdtab_set_state(sock, AW_FD_BRIDGED);
	aw_fdtab_unlock();
	aw_libc()->close(place->near);
}

void aw_place_accepted(int fd, int flags, const struct aw_pair_place *place)
{
	const struct aw_sock like = {
		.state = AW_FD_BRIDGED,
		.mode = AW_XS_AUTO,
		.role = AW_ROLE_PASSIVE,
		.is_pair = true,
		.beside = place->beside,
		.local = place->local,
		.remote = place->remote,
		.linger = linger_of(place->beside),
	};

	aw_twin_copy_options(fd, place->near);
	if (aw_libc()->dup3(place->near, fd, flags & SOCK_CLOEXEC ? O_CLOEXEC : 0) < 0)
		aw_log(AW_LOG_ERROR, "cannot replace fd %d: %s", fd, strerror(errno));
	aw_libc()->close(place->near);
	if (!aw_fdtab_add(fd, &like))
		aw_libc()->close(place->beside);
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
