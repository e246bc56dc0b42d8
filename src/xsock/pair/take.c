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
#include "xsock/process/name.h"
#include "xsock/process/sandbox.h"

/* An accepted connection. */
struct accepted {
	struct sockaddr_storage local, remote;
};

static bool read_names(int fd, struct accepted *conn)
{
	socklen_t local_len = sizeof(conn->local), remote_len = sizeof(conn->remote);

	return aw_libc()->getpeername(fd, (struct sockaddr *)&conn->remote, &remote_len) == 0 &&
	       aw_libc()->getsockname(fd, (struct sockaddr *)&conn->local, &local_len) == 0;
}

/* Finds the inode of the client's socket, if the client is on this host. */
static bool find_client(const struct accepted *conn, ino_t *ino)
{
	struct aw_pair_end local, remote;

	return aw_pair_end_of((const struct sockaddr *)&conn->local, &local) &&
	       aw_pair_end_of((const struct sockaddr *)&conn->remote, &remote) &&
	       aw_pair_is_local(&local, &remote) && aw_pair_find_peer(&local, &remote, ino);
}

/* Names near as any end of a pair (process/name.h): a process that receives it learns the connection's addresses. */
static void bind_name(int near, const struct accepted *conn)
{
	struct aw_sock sock = { .local = conn->local, .remote = conn->remote };
	struct stat file;

	if (fstat(near, &file) == 0)
		aw_name_bind(near, &sock, file.st_ino);
}

/* Connects to the offer for the client's socket. Returns this end of the pair, or -1. */
static int connect_to_offer(ino_t ino, const struct accepted *conn)
{
	int near = aw_libc()->socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_un name;
	socklen_t len = aw_pair_offer_name(ino, &name);

	if (near < 0)
		return -1;
	bind_name(near, conn);
	if (aw_libc()->connect(near, (struct sockaddr *)&name, len) == 0 &&
	    aw_pair_is_same_user(near))
		return near;
	aw_libc()->close(near);
	return -1;
}

void aw_offer_take(int fd)
{
	int saved = errno, near, beside;
	struct accepted conn;
	ino_t ino;

	if (aw_sandbox_is_on() || aw_fdtab_is_vfork_child() || !read_names(fd, &conn) ||
	    !find_client(&conn, &ino)) {
		errno = saved;
		return;
	}
	beside = aw_place_reserve(fd);
	near = beside >= 0 ? connect_to_offer(ino, &conn) : -1;
	if (near >= 0)
		aw_place_accepted(fd, near, beside);
	else if (beside >= 0)
		aw_libc()->close(beside);
	errno = saved;
}

/* The kernel gives a connection of a listener with TCP_DEFER_ACCEPT to accept(2) only with the client's first bytes. */
int aw_offer_announce(int listener)
{
	struct sockaddr_storage local;
	socklen_t len = sizeof(local);
	struct aw_pair_end at;

	if (aw_sandbox_is_on() || aw_fdtab_is_vfork_child() ||
	    aw_libc()->getsockname(listener, (struct sockaddr *)&local, &len) != 0 ||
	    !aw_pair_end_of((const struct sockaddr *)&local, &at) || !at.port ||
	    aw_sockopt_int(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, 0))
		return 0;
	return aw_hint_register(&at);
}
