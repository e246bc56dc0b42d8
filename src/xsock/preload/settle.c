// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Settles many sockets at once: before two processes may use them, before another program does, and before they are
// closed.
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>

#include "xsock/base/libc.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/preload/first_io.h"
#include "xsock/preload/probe.h"
#include "xsock/process/mode.h"
#include "xsock/process/proxy.h"
#include "xsock/process/watch.h"

#define PENDING_MAX 256 /* settled at a time */
#define START_NS 200000
#define START_TURNS 20000 /* longer than a start takes, or what else makes a socket STARTING */
#define CONNECT_MS 1500 /* for a connect before a fork: the kernel repeats its SYN after a second */

struct pending {
	enum aw_fd_state state;
	unsigned first, last;
	int fds[PENDING_MAX];
	int count;
};

static void find_pending(struct aw_sock *sock, int fd, void *arg)
{
	struct pending *found = arg;

	if (sock->state == found->state && (unsigned)fd >= found->first &&
	    (unsigned)fd <= found->last && found->count < PENDING_MAX)
		found->fds[found->count++] = fd;
}

typedef void settle_fn(int fd, const struct aw_deadline *by);

/* Calls settle for those in state from first to last. */
static void each_in(enum aw_fd_state state, unsigned first, unsigned last, settle_fn *settle,
		    const struct aw_deadline *by)
{
	struct pending found = { .state = state, .first = first, .last = last };

	do {
		found.count = 0;
		aw_fdtab_lock();
		aw_fdtab_each(find_pending, &found);
		aw_fdtab_unlock();
		for (int i = 0; i < found.count; i++) {
			settle(found.fds[i], by);
			found.first = (unsigned)found.fds[i] + 1;
		}
	} while (found.count == PENDING_MAX);
}

/* How long any of them may be waited for, from now on. */
static struct aw_deadline patience(void)
{
	int ms = aw_probe_patience_ms();

	return aw_deadline_after_ms(ms > CONNECT_MS ? ms : CONNECT_MS);
}

static void decide(int fd, const struct aw_deadline *by)
{
	if (aw_fdtab_is_undecided(fd))
		(void)aw_first_io_by(fd, AW_FIRST_WRITE, by);
}

/*
 * Whether a thread waits on fd for a client's Request, which may be a record's. To start the connection now, the proxy process
 * would have to take the Request that is to wake the thread.
 */
static bool is_awaited(int fd)
{
	const struct aw_sock *sock;
	bool awaited;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	awaited = sock && aw_fdtab_is_awaited(sock) && sock->mode == AW_XS_ON;
	aw_fdtab_unlock();
	return awaited && aw_mode_records();
}

/* A connection that a thread waits on is not decided: it stays the parent's alone. */
static void decide_shared(int fd, const struct aw_deadline *by)
{
	if (!is_awaited(fd))
		decide(fd, by);
}

void aw_first_io_each(const int *fds, int count)
{
	struct aw_deadline by = patience();

	for (int i = 0; i < count; i++)
		decide(fds[i], &by);
}

/* What connects still when it has had its time is TCP, or the parent's alone; so is at once what a thread waits for. */
static void decide_connecting(int fd, const struct aw_deadline *by)
{
	enum aw_xs_mode mode = AW_XS_OFF;
	struct aw_sock *sock;

	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	if (sock && sock->state == AW_FD_CONNECTING && !sock->caller)
		mode = sock->mode;
	aw_fdtab_unlock();
	if (mode == AW_XS_OFF)
		return;
	(void)aw_first_io_poll(fd, POLLOUT,
			       mode == AW_XS_ON ? aw_deadline_at_most_ms(by, CONNECT_MS) : 0);
	(void)aw_first_io_by(fd, AW_FIRST_WRITE, by);
	aw_fdtab_lock();
	sock = aw_fdtab_get(fd);
	if (sock && sock->state == AW_FD_CONNECTING && sock->mode == AW_XS_AUTO) {
		aw_watch_narrow(sock);
		aw_fdtab_drop(sock);
	}
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
	by = patience();
	each_in(AW_FD_PENDING, 0, UINT_MAX, decide_shared, &by);
	each_in(AW_FD_CONNECTING, 0, UINT_MAX, settle_connecting, &by);
}

void aw_first_io_pending(void)
{
	settle_all(decide_connecting);
}

void aw_first_io_before_spawn(void)
{
	settle_all(decide_inherited);
}

void aw_first_io_before_shell(void)
{
	struct aw_deadline by = patience();

	if (aw_fdtab_any_undecided())
		each_in(AW_FD_PENDING, 0, UINT_MAX, decide, &by);
	aw_framed_bridge_all(true);
}

/* The proxy process takes the Request that is to come, which would make the kernel end the connection by a reset. */
bool aw_farewell_request(int fd)
{
	struct aw_request request;

	aw_request_init(&request, AW_REQUEST_FAREWELL);
	return aw_proxy_notify(&request, &fd, 1) == 0;
}

static bool is_aborted(int fd)
{
	struct linger linger = { 0 };
	socklen_t len = sizeof(linger);

	return aw_libc()->getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len) == 0 &&
	       linger.l_onoff && !linger.l_linger;
}

/*
 * Who starts fd goes by its number, which must not be another file's meanwhile. Not for ever: a child that was forked
 * behind our back would not see the end of it.
 */
static void await_started(int fd, const struct aw_deadline *by)
{
	const struct timespec turn = { .tv_nsec = START_NS };
	int cancel;

	(void)by;
	if (aw_fdtab_state(fd) != AW_FD_STARTING || aw_fdtab_is_borrowed())
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	for (int i = 0; aw_fdtab_state(fd) == AW_FD_STARTING && i < START_TURNS; i++)
		nanosleep(&turn, NULL);
	pthread_setcancelstate(cancel, NULL);
}

/* The fds of a child of vfork are its own, their sockets its parent's. */
void aw_first_io_closing(int fd)
{
	int saved = errno;

	if (aw_fdtab_state(fd) == AW_FD_PENDING && !aw_fdtab_is_borrowed() && !is_aborted(fd))
		(void)aw_first_io_slow(fd, AW_FIRST_CLOSE, true);
	await_started(fd, NULL);
	errno = saved;
}

static void close_pending(int fd, const struct aw_deadline *by)
{
	(void)by;
	aw_first_io_closing(fd);
}

void aw_first_io_closing_range(unsigned first, unsigned last)
{
	if (aw_fdtab_any_undecided() && !aw_fdtab_is_borrowed())
		each_in(AW_FD_PENDING, first, last, close_pending, NULL);
}

void aw_first_io_await_range(unsigned first, unsigned last)
{
	int saved = errno;

	if (aw_fdtab_any_undecided() && !aw_fdtab_is_borrowed())
		each_in(AW_FD_STARTING, first, last, await_started, NULL);
	errno = saved;
}

__attribute__((destructor)) static void end(void)
{
	aw_first_io_closing_range(0, UINT_MAX);
}

__attribute__((constructor)) static void prepare(void)
{
	aw_fdtab_hooks.decide_pending = aw_first_io_pending;
}
