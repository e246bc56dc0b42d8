// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kept socket is that of the last probe, if the probe before it went to the same server from the same address. One
// call at a time uses it; others open sockets of their own. The child of a fork must not share it: either process would
// receive the other's answers.
#include "xsock/preload/probe_socket.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xsock/base/libc.h"
#include "xsock/process/fdtab.h"
#include "xsock/process/proxy.h"

/* The call that has set kept_busy has the variables below. */
static _Atomic(bool) kept_busy;
static struct {
	struct sockaddr_storage local, remote; /* of the last probe; local: without its port */
	int fd; /* -1: none is kept */
	bool again; /* the probe under way goes where the last one went */
	pid_t pid;
	ino_t ino; /* the file that fd must still be */
} kept = { .fd = -1 };

static socklen_t length_of(const struct sockaddr_storage *addr)
{
	return addr->ss_family == AF_INET ? sizeof(struct sockaddr_in)
					  : sizeof(struct sockaddr_in6);
}

static struct sockaddr_storage without_port(const struct sockaddr_storage *addr)
{
	struct sockaddr_storage bare = { 0 };

	memcpy(&bare, addr, length_of(addr));
	if (bare.ss_family == AF_INET)
		((struct sockaddr_in *)&bare)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&bare)->sin6_port = 0;
	return bare;
}

static bool is_same_file(int fd, ino_t ino)
{
	struct stat file;

	return fstat(fd, &file) == 0 && file.st_ino == ino;
}

/* Closes the kept socket, unless its number is another file's by now. */
static void drop_kept(void)
{
	if (kept.fd >= 0 && is_same_file(kept.fd, kept.ino)) {
		aw_fdtab_forget(kept.fd);
		aw_libc()->close(kept.fd);
	}
	kept.fd = -1;
}

/* Returns the kept socket if it leads from local to remote, or -1. */
static int find_kept(const struct sockaddr_storage *local, const struct sockaddr_storage *remote)
{
	kept.again = memcmp(local, &kept.local, sizeof(*local)) == 0 &&
		     memcmp(remote, &kept.remote, length_of(remote)) == 0;
	if (kept.again && kept.fd >= 0 && kept.pid == getpid() && is_same_file(kept.fd, kept.ino))
		return kept.fd;
	drop_kept();
	kept.local = *local;
	memcpy(&kept.remote, remote, length_of(remote));
	return -1;
}

static int open_socket(const struct sockaddr_storage *local, const struct sockaddr_storage *remote)
{
	int fd = aw_libc()->socket(remote->ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	if (aw_libc()->bind(fd, (const struct sockaddr *)local, length_of(local)) == 0 &&
	    aw_libc()->connect(fd, (const struct sockaddr *)remote, length_of(remote)) == 0)
		return fd;
	aw_libc()->close(fd);
	return -1;
}

static void release_kept(const struct aw_probe_socket *sock)
{
	if (sock->may_keep)
		atomic_store(&kept_busy, false);
}

/* A child of vfork runs in its parent's memory, but its fds are its own. */
bool aw_probe_socket_take(struct aw_probe_socket *sock, const struct sockaddr_storage *local,
			  const struct sockaddr_storage *remote)
{
	const struct sockaddr_storage from = without_port(local);

	sock->fd = -1;
	sock->may_keep = !aw_fdtab_is_vfork_child() && !atomic_exchange(&kept_busy, true);
	if (sock->may_keep)
		sock->fd = find_kept(&from, remote);
	if (sock->fd < 0)
		sock->fd = open_socket(&from, remote);
	if (sock->fd < 0)
		release_kept(sock);
	return sock->fd >= 0;
}

static void keep_socket(int fd)
{
	struct stat file;

	kept.fd = aw_proxy_move_high(fd);
	kept.pid = getpid();
	kept.ino = fstat(kept.fd, &file) == 0 ? file.st_ino : 0;
	aw_fdtab_hide(kept.fd);
}

void aw_probe_socket_put(const struct aw_probe_socket *sock, bool answered)
{
	bool is_kept = sock->may_keep && sock->fd == kept.fd;

	if (is_kept && !answered)
		drop_kept();
	else if (!is_kept && sock->may_keep && kept.again && answered)
		keep_socket(sock->fd);
	else if (!is_kept)
		aw_libc()->close(sock->fd);
	release_kept(sock);
}
