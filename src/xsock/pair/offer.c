// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The client's side of an offer.
#include "xsock/pair/offer.h"

#include <errno.h>
#include <poll.h>
#include <sys/single_threaded.h>

#include "xsock/base/left.h"
#include "xsock/base/libc.h"
#include "xsock/pair/hint.h"
#include "xsock/pair/place.h"
#include "xsock/process/mode.h"
#include "xsock/process/proxy.h"
#include "xsock/process/quiet.h"
#include "xsock/process/sandbox.h"

/* The accept of a server that runs on another processor comes within so many looks, and to sleep and wake would take longer. */
#define LOOKS 60

struct offer {
	struct aw_tcp_end server;
	int fd; /* the program's */
	int highest; /* of all fds of its socket */
	int flags; /* of its file, as fcntl(2) has them */
	int listener; /* the offer, or -1 */
	struct aw_pair_place
		place; /* its beside is a copy of fd, or -1: not yet, or it is in place */
	struct aw_sock *sock; /* fd's socket, STARTING and held; NULL: not yet */
	bool goes_on; /* the connect does, behind the offer */
	struct aw_quiet before;
};

static _Atomic(unsigned) going_on; /* the sum of aw_sock.connects */

static bool is_listener_at(const struct aw_sock *sock, int fd, const void *arg)
{
	const struct aw_tcp_end *server = arg;
	struct aw_tcp_end own;
	union aw_address local;
	socklen_t len = sizeof(local);

	return sock->state == AW_FD_LISTENER &&
	       aw_libc()->getsockname(fd, (struct sockaddr *)&local, &len) == 0 &&
	       aw_pair_end_of((const struct sockaddr *)&local, &own) && own.port == server->port;
}

/* A process has a directory in /proc for each thread. */
static bool is_only_thread(void)
{
	struct stat tasks;

	return __libc_single_threaded ||
	       (stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 2 + 1);
}

/* Returns whether it is this thread that would have to accept the connection. */
static bool is_to_itself(const struct aw_tcp_end *server)
{
	return aw_fdtab_any_listener() && aw_fdtab_find(0, is_listener_at, server) >= 0 &&
	       is_only_thread();
}

static int open_offer(int fd)
{
	struct sockaddr_un name;
	struct stat file;
	int offer = aw_libc()->socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t len;

	if (offer < 0)
		return -1;
	if (fstat(fd, &file) == 0) {
		len = aw_pair_offer_name(file.st_ino, &name);
		if (aw_libc()->bind(offer, (struct sockaddr *)&name, len) == 0 &&
		    aw_libc()->listen(offer, 1) == 0)
			return offer;
	}
	aw_libc()->close(offer);
	return -1;
}

/*
 * Makes fd's socket STARTING, so that other threads' calls wait. False: fd is no candidate any more, or another process may have its file,
 * which no pair would replace.
 */
static bool claim_socket(struct offer *offer)
{
	struct aw_sock *sock;

	aw_quiet_begin(&offer->before);
	aw_fdtab_lock();
	aw_fdtab_await_forks();
	sock = aw_fdtab_get_or_add(offer->fd);
	if (sock && sock->state == AW_FD_CANDIDATE && !aw_fdtab_is_shared(offer->fd)) {
		aw_fdtab_hold(sock);
		aw_fdtab_set_state(sock, AW_FD_STARTING);
		offer->sock = sock;
		for (int fd = aw_fdtab_next_fd(sock, -1); fd >= 0; fd = aw_fdtab_next_fd(sock, fd))
			offer->highest = fd;
	}
	aw_fdtab_unlock();
	return offer->sock;
}

/* Lets other calls of this process go on. The socket may be held further, for a connect that is under way. */
static void release_socket(struct offer *offer)
{
	if (offer->sock) {
		aw_fdtab_lock();
		if (offer->sock->state == AW_FD_STARTING)
			aw_fdtab_set_state(offer->sock, AW_FD_CANDIDATE);
		if (offer->goes_on) {
			offer->sock->connects++;
			going_on++;
		} else {
			aw_fdtab_release(offer->sock);
		}
		aw_fdtab_unlock();
	}
	aw_quiet_end(&offer->before);
}

/* Returns whether the TCP connection, which may be under way, is within this host. */
static bool is_here(struct offer *offer)
{
	struct sockaddr *local = (struct sockaddr *)&offer->place.local;
	socklen_t len = sizeof(offer->place.local);
	struct aw_tcp_end own;

	return aw_libc()->getsockname(offer->fd, local, &len) == 0 && aw_pair_end_of(local, &own) &&
	       aw_pair_is_local(&own, &offer->server);
}

static bool is_connected(struct offer *offer)
{
	struct sockaddr *remote = (struct sockaddr *)&offer->place.remote;
	socklen_t len = sizeof(offer->place.remote);

	return aw_libc()->getpeername(offer->fd, remote, &len) == 0;
}

/* The kernel may answer a SYN within the host a little later where it is busy, and does not where the listener's queue is full. */
static bool await_connected(struct offer *offer)
{
	struct pollfd pollfd = { .fd = offer->fd, .events = POLLOUT };

	if (is_connected(offer))
		return true;
	return aw_libc()->poll(&pollfd, 1, aw_mode_pair_ms()) > 0 && is_connected(offer);
}

static void offer_end(struct offer *offer)
{
	if (offer->listener >= 0)
		aw_libc()->close(offer->listener);
	if (offer->place.beside >= 0)
		aw_libc()->close(offer->place.beside);
	release_socket(offer);
}

/*
 * Makes the offer, where there may be a server for it. The socket is STARTING from before the offer on: no other call of this process
 * connects it or moves its bytes while the server may take it. The file does not block meanwhile.
 */
static bool offer_begin(struct offer *offer, int fd, const struct sockaddr *addr)
{
	*offer = (struct offer){ .fd = fd, .listener = -1, .place.beside = -1 };
	if (aw_sandbox_is_on() || aw_fdtab_is_vfork_child() ||
	    !aw_pair_end_of(addr, &offer->server) || !aw_hint_promises(&offer->server) ||
	    is_to_itself(&offer->server))
		return false;
	if (claim_socket(offer) && !is_connected(offer)) {
		offer->flags = aw_libc()->fcntl(fd, F_GETFL);
		offer->place.beside = aw_proxy_copy_spare(offer->highest);
	}
	if (offer->place.beside >= 0)
		offer->listener = open_offer(fd);
	if (offer->listener < 0)
		offer_end(offer);
	return offer->listener >= 0;
}

/* Waits until the server has taken the offer, has sent bytes or the end by TCP, or has been late. */
static void await_taker(const struct offer *offer)
{
	struct pollfd fds[] = { { .fd = offer->listener, .events = POLLIN },
				{ .fd = offer->fd, .events = POLLIN | POLLRDHUP } };

	for (int i = 0; i < LOOKS; i++)
		if (aw_libc()->poll(fds, 2, 0) != 0)
			return;
	(void)aw_libc()->poll(fds, 2, aw_mode_pair_ms());
}

/* Ends the offer. Returns this end of the pair; -1: nobody of this user has taken the offer. A stranger may have come before the server. */
static int take_back(const struct offer *offer)
{
	int near;

	(void)aw_libc()->shutdown(offer->listener, SHUT_RDWR);
	while ((near = aw_libc()->accept4(offer->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0 &&
	       !aw_pair_is_same_user(near))
		aw_libc()->close(near);
	return near;
}

/*
 * Ends the offer, and makes the pair where it was taken. connected: the connection is there; the server cannot take the offer before. On
 * this host it is there at once, unless the listener's queue is full: then there is no pair, since other threads may come to wait for
 * the TCP socket.
 */
static void offer_settle(struct offer *offer, bool connected)
{
	if (connected)
		await_taker(offer);
	offer->place.near = take_back(offer);
	if (connected)
		aw_hint_note(&offer->server, offer->place.near >= 0);
	if (offer->place.near < 0)
		return;
	if (!connected) /* the server was quicker */
		(void)is_connected(offer);
	aw_place_connected(offer->sock, offer->fd, &offer->place);
	offer->place.beside = -1;
}

/*
 * Connects, and decides. Another thread may learn from an epoll set that the connection is there; its calls wait. Returns as connect(2)
 * of a socket that does not block, but 0 where one that blocks has become connected.
 */
static int connect_and_settle(struct offer *offer, const struct sockaddr *addr, socklen_t len)
{
	bool blocks = !(offer->flags & O_NONBLOCK), connected;
	int result, err;

	if (blocks)
		aw_libc()->fcntl(offer->fd, F_SETFL, offer->flags | O_NONBLOCK);
	result = aw_libc()->connect(offer->fd, addr, len);
	err = errno;
	connected = is_here(offer) && await_connected(offer);
	if (blocks && connected && result != 0 && err == EINPROGRESS) {
		/* A reset that comes from now on is an error of a connection, and not of this call. */
		result = aw_libc()->connect(offer->fd, addr, len);
		err = errno;
	}
	/* The pair's end gets these flags, and the answers of this call: other threads have it from there on. */
	if (blocks)
		aw_libc()->fcntl(offer->fd, F_SETFL, offer->flags);
	offer->sock->connect_reported = blocks || result == 0;
	offer_settle(offer, connected);
	if (!offer->sock->is_pair)
		offer->sock->connect_reported = false;
	else if (blocks)
		result = 0;
	return result ? aw_fail_with(err) : 0;
}

static void end_connect(void *sock)
{
	int saved = errno;

	aw_fdtab_lock();
	((struct aw_sock *)sock)->connects--;
	going_on--;
	aw_fdtab_release(sock);
	aw_fdtab_note_change();
	aw_fdtab_unlock();
	errno = saved;
}

/* Waits by a second call for what the first has begun. The thread may be cancelled. */
static int connect_on(struct aw_sock *sock, int fd, const struct sockaddr *addr, socklen_t len)
{
	struct _pthread_cleanup_buffer left;
	int result;

	aw_left_push(&left, end_connect, sock);
	result = aw_libc()->connect(fd, addr, len);
	aw_left_pop(&left, 1);
	return result;
}

bool aw_offer_connect(int fd, const struct sockaddr *addr, socklen_t len, int *result)
{
	int saved = errno, err;
	struct offer offer;
	bool begun = offer_begin(&offer, fd, addr);

	errno = saved;
	if (!begun)
		return false;
	*result = connect_and_settle(&offer, addr, len);
	err = errno;
	offer.goes_on = *result != 0 && err == EINPROGRESS && !(offer.flags & O_NONBLOCK);
	offer_end(&offer);
	errno = err;
	if (offer.goes_on)
		*result = connect_on(offer.sock, fd, addr, len);
	return true;
}

void aw_offer_shut_down(int fd, int how)
{
	struct aw_sock *sock;
	int saved = errno;

	if (!going_on)
		return;
	aw_fdtab_lock();
	while ((sock = aw_fdtab_get(fd)) && sock->connects) {
		aw_fdtab_await_change_briefly();
		(void)aw_libc()->shutdown(fd, how);
	}
	aw_fdtab_unlock();
	errno = saved;
}
