// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds the undecided sockets, and begins one after the other.
#include "xsock/preload/settle.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "xsock/base/libc.h"
#include "xsock/base/sockopt.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/pair/attend.h"
#include "xsock/preload/first_io.h"
#include "xsock/process/mode.h"
#include "xsock/process/protect.h"

#define START_NS 200000
#define START_TURNS 20000 /* 4 s in all, longer than any start takes */
#define HANDSHAKE_TURN_MS 10
#define CONNECT_MS 1500 /* for each connect before a fork: the kernel repeats a SYN after 1 s */

static bool is_in_state(const struct aw_sock *sock, int fd, const void *arg)
{
	const enum aw_fd_state *state = arg;

	(void)fd;
	return sock->state == *state;
}

typedef void settle_fn(int fd);

/* Calls settle, without the lock, for each fd whose socket is in state. */
static void settle_each(enum aw_fd_state state, settle_fn *settle)
{
	for (int fd = aw_fdtab_find(0, is_in_state, &state); fd >= 0;
	     fd = aw_fdtab_find(fd + 1, is_in_state, &state))
		settle(fd);
}

static void hand_over_as(int fd, enum aw_first_io kind)
{
	struct aw_sock sock;

	if (aw_fdtab_look(fd, &sock) && !sock.shared && !sock.error)
		(void)aw_first_io_make(fd, kind, true);
}

/* A handshake does not move: a connection that has not begun one is the proxy process's. */
static void begin_now(int fd)
{
	if (!aw_fdtab_is_undecided(fd))
		return;
	if (aw_protect_is_on() && aw_mode_records())
		hand_over_as(fd, AW_FIRST_HAND_OVER);
	else
		(void)aw_first_io_make(fd, AW_FIRST_POLL, true);
}

static bool is_in_handshake(const struct aw_sock *sock, int fd, const void *arg)
{
	(void)fd;
	(void)arg;
	return sock->state == AW_FD_PENDING && sock->tls_begun && !sock->error;
}

/* Goes on with the handshake of fd, if one is under way, until end_ns. */
static void await_handshake(int fd, int64_t end_ns)
{
	struct aw_sock sock;

	while (aw_fdtab_look(fd, &sock) && is_in_handshake(&sock, fd, NULL) &&
	       aw_now_ns() < end_ns) {
		(void)aw_first_io_poll(fd, POLLIN, HANDSHAKE_TURN_MS);
		(void)aw_first_io_make(fd, AW_FIRST_POLL, true);
	}
}

/* However many peers stall, all handshakes together have AW_HAND_OVER_NS. surviving: only those of fds that an exec keeps. */
static void await_handshakes(bool surviving)
{
	int64_t end_ns = aw_now_ns() + AW_HAND_OVER_NS;

	for (int fd = aw_fdtab_find(0, is_in_handshake, NULL); fd >= 0;
	     fd = aw_fdtab_find(fd + 1, is_in_handshake, NULL))
		if (!surviving || !(aw_libc()->fcntl(fd, F_GETFD) & FD_CLOEXEC))
			await_handshake(fd, end_ns);
}

void aw_settle_fds(const int *fds, int count)
{
	int64_t end_ns = aw_now_ns() + AW_HAND_OVER_NS;

	for (int i = 0; i < count; i++) {
		await_handshake(fds[i], end_ns);
		begin_now(fds[i]);
	}
}

/*
 * Waits for fd's connect, CONNECT_MS at most, and begins the connection: a connect under way is the parent's alone. A socket whose
 * thread is still in connect is not waited for.
 */
static void begin_connecting(int fd)
{
	struct aw_sock before;

	if (!aw_fdtab_look(fd, &before) || before.state != AW_FD_CONNECTING || before.caller)
		return;
	(void)aw_first_io_poll(fd, POLLOUT, CONNECT_MS);
	begin_now(fd);
}

static void begin_inherited(int fd)
{
	if (!(aw_libc()->fcntl(fd, F_GETFD) & FD_CLOEXEC))
		begin_connecting(fd);
}

/* Without a slot no two processes can have a connection that has not begun. */
static void hand_over(int fd)
{
	hand_over_as(fd, AW_FIRST_HAND_OVER);
}

static void hand_over_in_fork(int fd)
{
	hand_over_as(fd, AW_FIRST_FORK);
}

static void settle_all(settle_fn *begin, settle_fn *hand_pending)
{
	if (!aw_fdtab_any_undecided())
		return;
	settle_each(AW_FD_CONNECTING, begin);
	aw_framed_reserve();
	await_handshakes(false);
	settle_each(AW_FD_PENDING, hand_pending);
}

void aw_settle_all(void)
{
	bool any = aw_fdtab_any_undecided();

	aw_attend_all(false);
	settle_all(begin_connecting, hand_over_in_fork);
	/* A record that has begun now is the child's as well. */
	if (any)
		aw_framed_prepare_fork();
}

/* The child of a vfork may exec a program without this library, which can have a record by a bridge. */
void aw_settle_before_spawn(void)
{
	aw_attend_all(true);
	if (aw_fdtab_any_undecided()) {
		await_handshakes(false);
		settle_each(AW_FD_PENDING, begin_now);
	}
	settle_all(begin_inherited, hand_over);
}

static void begin_or_hand_over(int fd)
{
	begin_now(fd);
	if (aw_fdtab_state(fd) == AW_FD_PENDING)
		(void)aw_first_io_make(fd, AW_FIRST_HAND_OVER, true);
}

static void begin_or_hand_over_surviving(int fd)
{
	if (!(aw_libc()->fcntl(fd, F_GETFD) & FD_CLOEXEC))
		begin_or_hand_over(fd);
}

/* A connection that has no slot stays: no relative can begin it, and this process can as the new user. */
static void hand_over_slot(int fd)
{
	struct aw_sock sock;

	if (aw_fdtab_look(fd, &sock) && sock.slot && !sock.error)
		begin_or_hand_over(fd);
}

void aw_settle_before_user(void)
{
	if (aw_fdtab_any_undecided())
		settle_each(AW_FD_PENDING, hand_over_slot);
}

void aw_settle_for_stranger(bool surviving)
{
	if (aw_fdtab_any_undecided()) {
		await_handshakes(surviving);
		settle_each(AW_FD_PENDING,
			    surviving ? begin_or_hand_over_surviving : begin_or_hand_over);
	}
	aw_framed_bridge_all(surviving);
}

/*
 * Returns whether another process has the connection that this one closes, and answers the client. ends: fd is closed in any case. Where it is the
 * socket's last, this process then has no part in the slot any more, so that of two that close at one moment the later one answers.
 */
static bool is_left_to_others(int fd, bool ends)
{
	struct aw_sock *sock;
	bool is_left;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	is_left = !sock || aw_first_io_is_shared(sock);
	if (sock && ends && is_left && sock->slot && sock->fds == 1 && !sock->users &&
	    !sock->error && sock->state == AW_FD_PENDING && !aw_framed_is_lost(sock->slot)) {
		is_left = aw_arena_leave_to_others(sock->slot);
		if (is_left) {
			aw_fdtab_drop_slot(sock);
			sock->error = EBADF; /* for other threads' calls until fd is closed */
		}
	}
	aw_fdtab_unlock();
	return is_left;
}

/* A child of vfork may close its fds, but their sockets are its parent's to decide. */
static void settle_before_close(int fd, bool ends)
{
	const struct timespec turn = { .tv_nsec = START_NS };
	int saved = errno, cancel;

	if (aw_fdtab_state(fd) == AW_FD_PENDING && !aw_fdtab_is_vfork_child() &&
	    !aw_sockopt_aborts(fd) && !is_left_to_others(fd, ends))
		(void)aw_first_io_make(fd, AW_FIRST_CLOSE, true);

	/*
	 * Waits until no other thread starts fd: the starting thread uses fd's number, which must not become another file's
	 * meanwhile. The wait has an end, because in a child that was forked by clone(2) the start never ends.
	 */
	if (aw_fdtab_state(fd) == AW_FD_STARTING && !aw_fdtab_is_vfork_child()) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		for (int i = 0; aw_fdtab_state(fd) == AW_FD_STARTING && i < START_TURNS; i++)
			nanosleep(&turn, NULL);
		pthread_setcancelstate(cancel, NULL);
	}
	errno = saved;
}

void aw_settle_before_close(int fd)
{
	settle_before_close(fd, true);
}

static void settle_before_exec(int fd)
{
	settle_before_close(fd, false);
}

static void settle_closed(settle_fn *settle)
{
	if (aw_fdtab_any_undecided() && !aw_fdtab_is_vfork_child())
		settle_each(AW_FD_PENDING, settle);
}

void aw_settle_before_end(void)
{
	settle_closed(aw_settle_before_close);
}

void aw_settle_before_exec(void)
{
	settle_closed(settle_before_exec);
}

__attribute__((destructor)) static void settle_at_exit(void)
{
	aw_settle_before_end();
}
