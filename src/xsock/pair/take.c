// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The server's side of an offer.
#include <errno.h>
#include <netinet/tcp.h>

#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/pair/hint.h"
#include "xsock/pair/offer.h"
#include "xsock/pair/peer.h"
#include "xsock/pair/place.h"
#include "xsock/pair/plain_note.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/name.h"
#include "xsock/process/proxy.h"
#include "xsock/process/sandbox.h"

/* Finds the inode of the client's socket. Returns why there is no pair. */
static enum aw_plain find_client(const struct aw_pair_place *place, ino_t *ino)
{
	struct aw_tcp_end local, remote;

	if (!aw_pair_end_of((const struct sockaddr *)&place->local, &local) ||
	    !aw_pair_end_of((const struct sockaddr *)&place->remote, &remote) ||
	    !aw_pair_is_local(&local, &remote))
		return AW_PLAIN_OTHER_HOST;
	return aw_pair_find_peer(&local, &remote, ino) ? AW_PLAIN_NOT : AW_PLAIN_NO_OFFER;
}

/*
 * Names near as any end of a pair (process/name.h): a process that receives it, or its other end, learns the connection's addresses.
 */
__attribute__((noinline)) static void bind_name(const struct aw_pair_place *place)
{
	struct aw_sock sock = { .is_pair = true, .local = place->local, .remote = place->remote };
	struct stat file;

	if (fstat(place->near, &file) == 0)
		aw_name_bind(place->near, &sock, file.st_ino);
}

/* Takes the offer of the socket ino, or returns why there is no pair. flags: as accept4(2) has them. */
static enum aw_plain take_offer(int fd, int flags, struct aw_pair_place *place, ino_t ino)
{
	struct sockaddr_un name;
	socklen_t len = aw_pair_offer_name(ino, &name);
	int near;

	place->beside = aw_proxy_copy_spare(fd);
	if (place->beside < 0)
		return AW_PLAIN_FEW_FDS;
	near = aw_libc()->socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (near >= 0 && (aw_libc()->connect(near, (struct sockaddr *)&name, len) != 0 ||
			  !aw_pair_is_same_user(near))) {
		aw_libc()->close(near);
		near = -1;
	}
	place->near = near;
	if (near < 0) {
		aw_libc()->close(place->beside);
		return AW_PLAIN_NO_OFFER;
	}
	if (!(flags & SOCK_NONBLOCK))
		aw_libc()->fcntl(near, F_SETFL, 0);
	bind_name(place);
	aw_place_accepted(fd, flags, place);
	return AW_PLAIN_NOT;
}

void aw_offer_take(int fd, int flags)
{
	enum aw_plain why = AW_PLAIN_NOT;
	struct aw_pair_place place;
	socklen_t local_len = sizeof(place.local), remote_len = sizeof(place.remote);
	int saved = errno;
	ino_t ino;

	if (aw_sandbox_is_on()) {
		why = AW_PLAIN_SANDBOX;
	} else if (aw_fdtab_is_vfork_child()) {
		why = AW_PLAIN_VFORK;
	} else if (fd >= AW_FDTAB_MAX) {
		why = AW_PLAIN_BEYOND;
	} else if (aw_libc()->getpeername(fd, (struct sockaddr *)&place.remote, &remote_len) == 0 &&
		   aw_libc()->getsockname(fd, (struct sockaddr *)&place.local, &local_len) == 0) {
		why = find_client(&place, &ino);
		if (!why)
			why = take_offer(fd, flags, &place, ino);
	}
	if (why)
		aw_plain_note(fd, why);
	errno = saved;
}

/* The kernel gives a connection of a listener with TCP_DEFER_ACCEPT to accept(2) only with the client's first bytes. */
int aw_offer_announce(int listener)
{
	union aw_address local;
	socklen_t len = sizeof(local);
	struct aw_tcp_end at;

	if (aw_sandbox_is_on() || aw_fdtab_is_vfork_child() ||
	    aw_libc()->getsockname(listener, (struct sockaddr *)&local, &len) != 0 ||
	    !aw_pair_end_of((const struct sockaddr *)&local, &at) || !at.port ||
	    aw_sockopt_int(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, 0))
		return 0;
	aw_plain_prepare();
	return aw_hint_register(&at);
}

void aw_offer_refuse(int fd)
{
	struct aw_sock *sock;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	if (sock && sock->state == AW_FD_LISTENER)
		aw_fdtab_close_beside(sock);
	aw_fdtab_unlock();
}
