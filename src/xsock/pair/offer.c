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
#include "xsock/pair/plain_note.h"
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
	enum aw_plain why; /* the connection is plain TCP */
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

/*
 * Makes fd's socket STARTING, so that other threads' calls wait. Else why: fd is no candidate any more, or another process may have its
 * file, which no pair would replace.
 */
static enum aw_plain claim_socket(struct offer *offer)
{
	enum aw_plain why = AW_PLAIN_NOT;
	struct aw_sock *sock;

	aw_quiet_begin(&offer->before);
	aw_fdtab_lock();
	aw_fdtab_await_forks();
	sock = aw_fdtab_get_or_add(offer->fd);
	if (!sock || sock->state != AW_FD_CANDIDATE) {
		why = AW_PLAIN_BEYOND;
	} else if (aw_fdtab_is_shared(offer->fd)) {
		why = AW_PLAIN_FORKED;
	} else {
		aw_fdtab_hold(sock);
		aw_fdtab_set_state(sock, AW_FD_STARTING);
		offer->sock = sock;
		for (int fd = aw_fdtab_next_fd(sock, -1); fd >= 0; fd = aw_fdtab_next_fd(sock, fd))
			offer->highest = fd;
	}
	aw_fdtab_unlock();
	return why;
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

static void offer_end(struct offer *offer)
{
	if (offer->listener >= 0)
		aw_libc()->close(offer->listener);
	if (offer->place.beside >= 0)
		aw_libc()->close(offer->place.beside);

	/* Other calls of this process go on. The socket may be held further, for a connect that is under way. */
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

/* Opens the offer of a socket that is claimed. Returns why there is none. */
static enum aw_plain offer_open(struct offer *offer)
{
	struct sockaddr_un name;
	struct stat file;
	socklen_t len;

	if (is_connected(offer))
		return AW_PLAIN_BEYOND; /* connect(2) fails with EISCONN */
	offer->flags = aw_libc()->fcntl(offer->fd, F_GETFL);
	offer->place.beside = aw_proxy_copy_spare(offer->highest);
	if (offer->place.beside < 0)
		return AW_PLAIN_FEW_FDS;
	offer->listener = aw_libc()->socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (offer->listener < 0 || fstat(offer->fd, &file) != 0)
		return AW_PLAIN_NO_SOCKET;
	len = aw_pair_offer_name(file.st_ino, &name);
	return aw_libc()->bind(offer->listener, (struct sockaddr *)&name, len) == 0 &&
			       aw_libc()->listen(offer->listener, 1) == 0
		       ? AW_PLAIN_NOT
		       : AW_PLAIN_NO_SOCKET;
}

/*
 * Makes the offer, where there may be a server for it, or returns why there is none. The socket is STARTING from before the offer on: no
 * other call of this process connects it or moves its bytes while the server may take it. The file does not block meanwhile.
 */
static enum aw_plain offer_begin(struct offer *offer, int fd, const struct sockaddr *addr)
{
	struct stat tasks;
	enum aw_plain why;

	*offer = (struct offer){ .fd = fd, .listener = -1, .place.beside = -1 };
	if (aw_sandbox_is_on())
		return AW_PLAIN_SANDBOX;
	if (aw_fdtab_is_vfork_child())
		return AW_PLAIN_VFORK;
	if (!aw_pair_end_of(addr, &offer->server))
		return AW_PLAIN_NO_LISTENER;
	aw_plain_prepare();
	why = aw_hint_refuses(&offer->server);
	/* This thread itself may have to accept the connection. A process has a directory in /proc for each thread. */
	if (!why && aw_fdtab_any_listener() &&
	    aw_fdtab_find(0, is_listener_at, &offer->server) >= 0 &&
	    (__libc_single_threaded ||
	     (stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 2 + 1)))
		why = AW_PLAIN_OWN_LISTENER;
	if (why)
		return why;
	why = claim_socket(offer);
	if (!why)
		why = offer_open(offer);
	if (why)
		offer_end(offer);
	return why;
}

/*
 * Ends the offer, and makes the pair where it was taken. connected: the connection is there; the server cannot take the offer before. On
 * this host it is there at once, unless the listener's queue is full: then there is no pair, since other threads may come to wait for
 * the TCP socket.
 */
static void offer_settle(struct offer *offer, bool connected)
{
	struct pollfd fds[] = { { .fd = offer->listener, .events = POLLIN },
				{ .fd = offer->fd, .events = POLLIN | POLLRDHUP } };
	int ready = 0, near;

	/* Waits until the server has taken the offer, has sent bytes or the end by TCP, or has been late. */
	if (connected) {
		for (int i = 0; ready == 0 && i < LOOKS; i++)
			ready = aw_libc()->poll(fds, 2, 0);
		if (ready == 0)
			ready = aw_libc()->poll(fds, 2, aw_mode_pair_ms());
		offer->why = ready > 0 && fds[1].revents ? AW_PLAIN_SERVER_FIRST : AW_PLAIN_LATE;
	}

	/* A stranger may have come before the server. */
	(void)aw_libc()->shutdown(offer->listener, SHUT_RDWR);
	while ((near = aw_libc()->accept4(offer->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0 &&
	       !aw_pair_is_same_user(near))
		aw_libc()->close(near);
	if (connected)
		aw_hint_note(&offer->server, near >= 0);
	offer->place.near = near;
	if (near < 0)
		return;

	offer->why = AW_PLAIN_NOT;
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
	struct pollfd pollfd = { .fd = offer->fd, .events = POLLOUT };
	bool blocks = !(offer->flags & O_NONBLOCK), connected;
	int result, err;

	if (blocks)
		aw_libc()->fcntl(offer->fd, F_SETFL, offer->flags | O_NONBLOCK);
	result = aw_libc()->connect(offer->fd, addr, len);
	err = errno;
	offer->why = is_here(offer) ? AW_PLAIN_HANDSHAKE : AW_PLAIN_OTHER_HOST;
	/* The kernel may answer a SYN within the host a little later where it is busy, and does not where the listener's queue is full. */
	connected = offer->why == AW_PLAIN_HANDSHAKE &&
		    (is_connected(offer) ||
		     (aw_libc()->poll(&pollfd, 1, aw_mode_pair_ms()) > 0 && is_connected(offer)));
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

enum aw_plain aw_offer_connect(int fd, const struct sockaddr *addr, socklen_t len, int *result)
{
	struct _pthread_cleanup_buffer left;
	int saved = errno, err;
	struct offer offer;
	enum aw_plain why = offer_begin(&offer, fd, addr);

	errno = saved;
	if (why)
		return why;
	*result = connect_and_settle(&offer, addr, len);
	aw_plain_note_connect(fd, addr, offer.why, *result);
	err = errno;
	offer.goes_on = *result != 0 && err == EINPROGRESS && !(offer.flags & O_NONBLOCK);
	offer_end(&offer);
	errno = err;
	/* A second call waits for what the first has begun. The thread may be cancelled. */
	if (offer.goes_on) {
		aw_left_push(&left, end_connect, offer.sock);
		*result = aw_libc()->connect(fd, addr, len);
		aw_left_pop(&left, 1);
	}
	return AW_PLAIN_NOT;
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
