// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds the undecided sockets, and decides one after the other by a common deadline.
#include "xsock/preload/settle.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "xsock/base/libc.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/probe.h"
#include "xsock/process/mode.h"

#define START_NS 200000
#define START_TURNS 20000 /* 4 s in all, longer than any start takes */
#define CONNECT_MS 1500 /* for a connect before a fork: the kernel repeats a SYN after 1 s */

static bool is_in_state(const struct aw_sock *sock, int fd, const void *arg)
{
	const enum aw_fd_state *state = arg;

	(void)fd;
	return sock->state == *state;
}

typedef void settle_fn(int fd, const struct aw_deadline *by);

/* Calls settle, without the lock, for each fd whose socket is in state. */
static void settle_each(enum aw_fd_state state, settle_fn *settle, const struct aw_deadline *by)
{
	for (int fd = aw_fdtab_find(0, is_in_state, &state); fd >= 0;
	     fd = aw_fdtab_find(fd + 1, is_in_state, &state))
		settle(fd, by);
}

/* Returns the deadline for all sockets of one call. */
static struct aw_deadline settle_deadline(void)
{
	int ms = aw_probe_patience_ms();

	return aw_deadline_after_ms(ms > CONNECT_MS ? ms : CONNECT_MS);
}

static void decide_now(int fd, const struct aw_deadline *by)
{
	if (aw_fdtab_is_undecided(fd))
		(void)aw_first_io_make_by(fd, AW_FIRST_WRITE, by);
}

/*
 * Returns whether a thread waits on fd for a client's Request, which may be a record's. Then fd is
 * not started now, because the proxy process would have to take the Request that is to wake the
 * thread.
 */
static bool is_awaited(int fd)
{
	struct aw_sock sock;

	return aw_fdtab_look(fd, &sock) && aw_fdtab_is_awaited(&sock) && sock.mode == AW_XS_ON &&
	       aw_mode_records();
}

/* Decides fd, unless a thread waits on it: then the connection stays the parent's alone. */
static void decide_shared(int fd, const struct aw_deadline *by)
{
	if (!is_awaited(fd))
		decide_now(fd, by);
}

void aw_settle_fds(const int *fds, int count)
{
	struct aw_deadline by = settle_deadline();

	for (int i = 0; i < count; i++)
		decide_now(fds[i], &by);
}

/*
 * Waits for fd's connect until the deadline, in mode `on` only, and decides fd. A socket in `auto`
 * that still connects then becomes plain TCP; one in `on` stays CONNECTING, and in the child of the
 * fork it is not connected. A socket whose thread is still in connect is not waited for.
 */
static void decide_connecting(int fd, const struct aw_deadline *by)
{
	struct aw_sock *sock, before;

	if (!aw_fdtab_look(fd, &before) || before.state != AW_FD_CONNECTING || before.caller ||
	    before.mode == AW_XS_OFF)
		return;
	(void)aw_first_io_poll(
		fd, POLLOUT, before.mode == AW_XS_ON ? aw_deadline_at_most_ms(by, CONNECT_MS) : 0);
	(void)aw_first_io_make_by(fd, AW_FIRST_WRITE, by);
	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	if (sock && sock->state == AW_FD_CONNECTING && sock->mode == AW_XS_AUTO)
		aw_first_io_make_plain(sock);
	aw_fdtab_unlock();
}

static void decide_inherited(int fd, const struct aw_deadline *by)
{
	if (!(aw_libc()->fcntl(fd, F_GETFD) & FD_CLOEXEC))
		decide_connecting(fd, by);
}

static void settle_all(settle_fn *settle_connecting)
{
	struct aw_deadline by;

	if (!aw_fdtab_any_undecided())
		return;
	by = settle_deadline();
	settle_each(AW_FD_PENDING, decide_shared, &by);
	settle_each(AW_FD_CONNECTING, settle_connecting, &by);
}

void aw_settle_all(void)
{
	settle_all(decide_connecting);
}

void aw_settle_before_spawn(void)
{
	settle_all(decide_inherited);
}

void aw_settle_before_shell(void)
{
	struct aw_deadline by = settle_deadline();

	if (aw_fdtab_any_undecided())
		settle_each(AW_FD_PENDING, decide_now, &by);
	aw_framed_bridge_all(true);
}

/* Returns whether SO_LINGER makes close reset the connection. */
static bool is_aborted(int fd)
{
	struct linger linger = { 0 };
	socklen_t len = sizeof(linger);

	return aw_libc()->getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len) == 0 &&
	       linger.l_onoff && !linger.l_linger;
}

/*
 * Waits until no other thread starts fd: the starting thread uses fd's number, which must not
 * become another file's meanwhile. The wait has an end, because in a child that was forked by
 * clone(2) the start never ends.
 */
static void await_started(int fd)
{
	const struct timespec turn = { .tv_nsec = START_NS };
	int cancel;

	if (aw_fdtab_state(fd) != AW_FD_STARTING || aw_fdtab_is_vfork_child())
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	for (int i = 0; aw_fdtab_state(fd) == AW_FD_STARTING && i < START_TURNS; i++)
		nanosleep(&turn, NULL);
	pthread_setcancelstate(cancel, NULL);
}

/* A child of vfork may close its fds, but their sockets are its parent's to decide. */
void aw_settle_before_close(int fd)
{
	int saved = errno;

	if (aw_fdtab_state(fd) == AW_FD_PENDING && !aw_fdtab_is_vfork_child() && !is_aborted(fd))
		(void)aw_first_io_make(fd, AW_FIRST_CLOSE, true);
	await_started(fd);
	errno = saved;
}

static void close_pending(int fd, const struct aw_deadline *by)
{
	(void)by;
	aw_settle_before_close(fd);
}

void aw_settle_before_end(void)
{
	if (aw_fdtab_any_undecided() && !aw_fdtab_is_vfork_child())
		settle_each(AW_FD_PENDING, close_pending, NULL);
}

__attribute__((destructor)) static void settle_at_exit(void)
{
	aw_settle_before_end();
}
