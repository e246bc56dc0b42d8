// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A framed fd becomes one end of a pair, and the proxy process goes on with its record: for what reads or writes the fd where
// no wrapper sees it. Relatives that have the TCP socket, too, stay with the record.
#include "xsock/framed/bridge.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/single_threaded.h>

#include "xsock/base/libc.h"
#include "xsock/base/log.h"
#include "xsock/framed/framed.h"
#include "xsock/framed/slot.h"
#include "xsock/framed/swap.h"
#include "xsock/process/proxy.h"
#include "xsock/process/sandbox.h"
#include "xsock/process/watch.h"

#define BATCH_MAX 256 /* sockets at a time */

_Atomic(uint32_t) aw_framed_followed;

static void fill_request(struct aw_request *request, const struct aw_sock *sock, int tcp,
			 bool alone)
{
	aw_request_init(request, AW_REQUEST_RECORD);
	request->slot = aw_arena_number(sock->slot);
	request->threads = !__libc_single_threaded;
	request->alone = alone;
	request->mode = (uint8_t)sock->mode;
	request->role = (uint8_t)sock->role;
	request->fd = tcp;
}

/*
 * The proxy process answers when it has its share of the slot: until then the slot is held by ours. Where the slot is in a bridge
 * already, near becomes the end that others have.
 */
static int give(struct aw_sock *sock, int tcp, int far, int near)
{
	const int fds[] = { tcp, far, near, aw_arena_fd() };
	bool alone = !aw_fdtab_is_borrowed() && aw_arena_is_alone(sock->slot);
	struct aw_reply answer;
	struct aw_request request;
	int err, other = -1;

	aw_slot_give_options(sock->slot, tcp, near);
	fill_request(&request, sock, tcp, alone);
	err = aw_proxy_call_with(&request, fds, 4, &answer, &other);
	if (other >= 0) {
		if (!err && aw_libc()->dup3(other, near, O_CLOEXEC) < 0)
			err = errno;
		aw_libc()->close(other);
	}
	err = err ? err : answer.error;
	sock->proxy = aw_proxy_id();
	if (!err && !alone)
		aw_arena_bridge(sock->slot, sock->proxy);
	return err;
}

/* Sockets that are STARTING and held, each with one of its fds. */
struct batch {
	struct aw_sock *socks[BATCH_MAX];
	int fds[BATCH_MAX];
	int count;
	bool surviving; /* those alone that have an fd that an exec leaves open */
	uint64_t proxy; /* those alone that others have bridged with it; 0: whether or not */
};

/* With the lock. */
static void claim(struct batch *batch, struct aw_sock *sock, int fd)
{
	aw_fdtab_hold(sock);
	aw_fdtab_set_state(sock, AW_FD_STARTING);
	batch->socks[batch->count] = sock;
	batch->fds[batch->count++] = fd;
}

static bool survives(int fd)
{
	return !(aw_libc()->fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void claim_each(struct aw_sock *sock, int fd, void *arg)
{
	struct batch *batch = arg;

	if (sock->state == AW_FD_FRAMED && batch->count < BATCH_MAX && aw_fdtab_get(fd) == sock &&
	    (!batch->surviving || survives(fd)) &&
	    (!batch->proxy || atomic_load(&sock->slot->proxy) == batch->proxy))
		claim(batch, sock, fd);
}

static void claim_one(struct batch *batch, int fd)
{
	struct aw_sock *sock = aw_fdtab_get_started(fd);

	if (sock && sock->state == AW_FD_FRAMED)
		claim(batch, sock, fd);
}

static void drop_slot(struct aw_sock *sock)
{
	sock->slot = NULL;
	for (int fd = aw_fdtab_next(sock, -1); fd >= 0; fd = aw_fdtab_next(sock, fd))
		atomic_store(&aw_fdtab_slots[fd], NULL);
}

static void settle(struct aw_sock *sock, bool bridged)
{
	aw_fdtab_lock();
	if (bridged)
		drop_slot(sock);
	else
		aw_fdtab_set_state(sock, AW_FD_FRAMED);
	aw_fdtab_release(sock);
	aw_fdtab_unlock();
}

/* No thread of ours is in a half any more, or comes to one by these fds. */
static void call_out(struct aw_slot *slot)
{
	aw_half_drain(&slot->rx_lock);
	aw_half_drain(&slot->tx_lock);
}

static int bridge(struct aw_sock *sock, int fd)
{
	struct aw_slot *slot = sock->slot;
	int err;

	call_out(slot);
	aw_slot_keep(slot, fd);
	err = aw_swap_socket(sock, fd, give);
	settle(sock, !err);
	if (!err) {
		aw_arena_leave(slot);
		return 0;
	}
	aw_xs_log(AW_XS_LOG_ERROR, "fd %d stays a record's: %s", fd, strerror(err));
	atomic_store(&slot->proxy, 0); /* so that no call tries again */
	return err;
}

static int bridge_batch(const struct batch *batch)
{
	int err = 0;

	if (batch->count)
		aw_watch_read(batch->socks, batch->count);
	for (int i = 0; i < batch->count; i++) {
		int failure = bridge(batch->socks[i], batch->fds[i]);

		err = err ? err : failure;
	}
	return err;
}

/* A handler that came to what is STARTING would wait for its own thread, and all threads for one that is cancelled. */
struct guard {
	sigset_t before;
	int cancel, saved;
};

static void guard_begin(struct guard *guard)
{
	sigset_t all;

	guard->saved = errno;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &guard->before);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard->cancel);
}

static int guard_end(const struct guard *guard, int err)
{
	pthread_setcancelstate(guard->cancel, NULL);
	pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
	errno = err ? err : guard->saved;
	return err ? -1 : 0;
}

int aw_framed_bridge(int fd)
{
	struct batch batch = { 0 };
	struct guard guard;

	if (aw_arena_fd() < 0 || !aw_fdtab_is_special(fd) || aw_fdtab_is_borrowed())
		return 0;
	guard_begin(&guard);
	aw_fdtab_lock();
	aw_fdtab_await_forks();
	claim_one(&batch, fd);
	aw_fdtab_unlock();
	return guard_end(&guard, bridge_batch(&batch));
}

static void bridge_all(bool surviving, uint64_t proxy)
{
	struct batch batch;
	struct guard guard;
	int err;

	if (aw_arena_fd() < 0 || aw_fdtab_is_borrowed())
		return;
	guard_begin(&guard);
	do {
		batch.count = 0;
		batch.surviving = surviving;
		batch.proxy = proxy;
		aw_fdtab_lock();
		aw_fdtab_await_forks();
		aw_fdtab_each(claim_each, &batch);
		aw_fdtab_unlock();
		err = bridge_batch(&batch);
	} while (batch.count == BATCH_MAX && !err);
	(void)guard_end(&guard, 0);
}

void aw_framed_bridge_all(bool surviving)
{
	bridge_all(surviving, 0);
}

void aw_framed_follow_all(void)
{
	uint64_t proxy;
	int saved = errno;

	if (aw_sandbox_is_on() || aw_fdtab_is_borrowed()) /* a sandbox began with nothing framed */
		return;
	atomic_store(&aw_framed_followed, aw_arena_bridges());
	proxy = aw_proxy_id();
	if (proxy)
		bridge_all(false, proxy);
	errno = saved;
}

void aw_framed_follow_one(int fd)
{
	struct aw_slot *slot = aw_framed_slot(fd);

	if (slot && atomic_load(&slot->proxy) == aw_proxy_id())
		(void)aw_framed_bridge(fd);
}

struct search {
	ino_t ino;
	struct aw_sock *sock;
};

static void find_same(struct aw_sock *sock, int fd, void *arg)
{
	struct search *search = arg;

	(void)fd;
	if (sock->slot && sock->state == AW_FD_FRAMED && sock->ino == search->ino)
		search->sock = sock;
}

/* What the table has of the file behind fd, which the table may not know. */
static bool look_up(int fd, struct aw_sock *like)
{
	struct search search = { 0 };
	struct stat file;

	if (fstat(fd, &file) != 0 || !S_ISSOCK(file.st_mode))
		return false;
	search.ino = file.st_ino;
	aw_fdtab_lock();
	aw_fdtab_each(find_same, &search);
	if (search.sock)
		*like = *search.sock;
	aw_fdtab_unlock();
	return search.sock;
}

/* Gives the file of from to all fds above it that have the file ino. */
static void follow(int from, ino_t ino)
{
	for (int fd = from + 1; fd < AW_BRIDGE_BORROWED_MAX; fd++) {
		struct stat file;

		if (fstat(fd, &file) == 0 && file.st_ino == ino && S_ISSOCK(file.st_mode) &&
		    survives(fd) && aw_libc()->dup3(from, fd, 0) < 0)
			aw_xs_log(AW_XS_LOG_ERROR, "cannot replace fd %d: %s", fd, strerror(errno));
	}
}

void aw_framed_bridge_borrowed(void)
{
	struct aw_sock own;
	struct guard guard;

	if (aw_arena_fd() < 0)
		return;
	guard_begin(&guard);
	for (int fd = 0; fd < AW_BRIDGE_BORROWED_MAX; fd++) {
		ino_t ino;
		int err;

		if (!survives(fd) || !look_up(fd, &own))
			continue;
		ino = own.ino;
		err = aw_swap_copy(&own, fd, give);
		if (err)
			aw_xs_log(AW_XS_LOG_ERROR, "fd %d stays a record's: %s", fd, strerror(err));
		else
			follow(fd, ino);
	}
	(void)guard_end(&guard, 0);
}
