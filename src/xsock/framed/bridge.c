// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Turns FRAMED fds into ends of pairs whose records the proxy process works on. Other processes
// that hold the slot keep the record until they follow.
#include "xsock/framed/bridge.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/single_threaded.h>

#include "base/log.h"
#include "xsock/base/libc.h"
#include "xsock/framed/answer.h"
#include "xsock/framed/bridged.h"
#include "xsock/framed/framed.h"
#include "xsock/framed/slot.h"
#include "xsock/framed/swap.h"
#include "xsock/process/memory.h"
#include "xsock/process/proxy.h"
#include "xsock/process/quiet.h"
#include "xsock/process/registration.h"
#include "xsock/process/sandbox.h"

#define BATCH_MAX 256 /* sockets that are bridged at a time */

_Atomic(uint32_t) aw_framed_followed;

/* Breaks the slot, and returns true, if a proxy process has died with bytes of it. */
static bool slot_is_lost(struct aw_slot *slot)
{
	return aw_bridged_review(slot, aw_arena_fd(), aw_arena_number(slot));
}

/*
 * Requests the bridge. The proxy process replies when it has its share of the slot; until then this
 * process holds the slot. If the slot is bridged already, near becomes the near end that other
 * processes have.
 */
static int request_bridge(struct aw_sock *sock, int tcp, int far, int near)
{
	const int fds[] = { tcp, far, near, aw_arena_fd() };
	bool alone = !aw_fdtab_is_vfork_child() && aw_arena_is_alone(sock->slot);
	struct aw_reply reply;
	struct aw_request request;
	int err, other = -1;

	if (slot_is_lost(sock->slot)) /* another proxy process would go on over the gap */
		return ECONNRESET;
	aw_slot_give_options(sock->slot, tcp, near);
	aw_request_init(&request, AW_REQUEST_RECORD);
	request.slot = aw_arena_number(sock->slot);
	request.threads = !__libc_single_threaded;
	request.alone = alone;
	request.mode = (uint8_t)sock->mode;
	request.role = (uint8_t)sock->role;
	request.fd = tcp;
	err = aw_proxy_call_with(&request, fds, 4, &reply, &other);
	if (other >= 0) {
		if (!err && aw_libc()->dup3(other, near, O_CLOEXEC) < 0)
			err = errno;
		aw_libc()->close(other);
	}
	err = err ? err : reply.error;
	sock->proxy = aw_proxy_id();
	if (!err && !alone)
		aw_arena_bridge(sock->slot, sock->proxy);
	if (err)
		(void)slot_is_lost(sock->slot);
	return err;
}

struct bridge_choice {
	bool surviving; /* only sockets with an fd that an exec leaves open */
	bool owing; /* only sockets of which TCP has yet to take the rest of an FPDU */
	bool ending; /* the process ends, perhaps in a signal handler: no epoll set needs the sockets */
	uint64_t proxy; /* only sockets that other processes have bridged with it; 0: all */
};

/* Sockets to bridge, in state STARTING and held, each with one of its fds. */
struct bridge_set {
	struct aw_sock *socks[BATCH_MAX];
	int fds[BATCH_MAX];
	int count;
	struct bridge_choice choice;
};

static void set_add(struct bridge_set *set, struct aw_sock *sock, int fd)
	AW_REQUIRES(aw_fdtab_mutex)
{
	aw_fdtab_hold(sock);
	aw_fdtab_set_state(sock, AW_FD_STARTING);
	set->socks[set->count] = sock;
	set->fds[set->count++] = fd;
}

static bool survives_exec(int fd)
{
	return !(aw_libc()->fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void set_add_each(struct aw_sock *sock, int fd, void *arg) AW_REQUIRES(aw_fdtab_mutex)
{
	struct bridge_set *set = arg;
	const struct bridge_choice *choice = &set->choice;

	if (sock->state != AW_FD_FRAMED || set->count >= BATCH_MAX)
		return;
	/* A connection is owed something where work is left for it when this process can do no more. */
	if (choice->owing && !aw_slot_has_debt(sock->slot) &&
	    !(choice->ending && aw_answer_is_due(sock->slot) && aw_answer_is_owed(sock->slot, fd)))
		return;
	if (aw_fdtab_get(fd) == sock && (!choice->surviving || survives_exec(fd)) &&
	    (!choice->proxy || atomic_load(&sock->slot->proxy) == choice->proxy))
		set_add(set, sock, fd);
}

static int bridge_socket(struct aw_sock *sock, int fd, bool ending)
{
	struct aw_slot *slot = sock->slot;
	/* In state STARTING no thread of this process begins to work on it. */
	bool drained = aw_fdtab_drain_socket(sock);
	struct aw_half half;
	int err;

	aw_slot_stop_flush(slot);
	aw_slot_keep(slot, fd);
	err = aw_swap_socket(sock, fd, request_bridge);
	aw_fdtab_lock();
	if (err)
		aw_fdtab_set_state(sock, AW_FD_FRAMED);
	else
		aw_fdtab_drop_slot(sock);
	aw_fdtab_release(sock);
	aw_fdtab_unlock();
	if (!err) {
		if (drained) /* else a thread that does not come out keeps the slot taken */
			aw_arena_leave(slot);
		return 0;
	}
	aw_log(AW_LOG_ERROR, "fd %d cannot be handed to the proxy process and stays a record: %s",
	       fd, strerror(err));
	atomic_store(&slot->proxy, 0); /* no later call tries again */
	if (!ending && aw_half_enter_for(&half, slot, &slot->tx_lock, fd) == 0) {
		if (aw_slot_owes(slot))
			(void)aw_slot_flush_later(slot, fd);
		aw_half_leave(&half);
	}
	return err;
}

static int bridge_each(const struct bridge_set *set)
{
	int err = 0;

	if (set->count && !set->choice.ending)
		aw_registration_read(set->socks, set->count);
	for (int i = 0; i < set->count; i++) {
		int failure = bridge_socket(set->socks[i], set->fds[i], set->choice.ending);

		err = err ? err : failure;
	}
	return err;
}

/* The thread is quiet while a socket is STARTING. */
struct guard {
	struct aw_quiet before;
	int saved;
};

static void guard_begin(struct guard *guard)
{
	guard->saved = errno;
	aw_quiet_begin(&guard->before);
}

static int guard_end(const struct guard *guard, int err)
{
	aw_quiet_end(&guard->before);
	errno = err ? err : guard->saved;
	return err ? -1 : 0;
}

int aw_framed_bridge(int fd)
{
	struct bridge_set *set;
	struct aw_sock *sock;
	struct guard guard;
	int err;

	if (aw_arena_fd() < 0 || !aw_fdtab_is_special(fd) || aw_fdtab_is_vfork_child())
		return 0;
	set = aw_memory_map(sizeof(*set));
	if (!set)
		return aw_fail_with(ENOMEM);
	guard_begin(&guard);
	aw_fdtab_lock();
	aw_fdtab_await_forks();
	sock = aw_fdtab_get_started(fd);
	if (sock && sock->state == AW_FD_FRAMED)
		set_add(set, sock, fd);
	aw_fdtab_unlock();
	err = bridge_each(set);
	aw_memory_unmap(set, sizeof(*set));
	return guard_end(&guard, err);
}

/* The set is mapped, since it is too large for a small stack. */
static void bridge_all(struct bridge_choice choice)
{
	struct bridge_set *set;
	struct guard guard;
	int err;

	if (aw_arena_fd() < 0 || aw_fdtab_is_vfork_child())
		return;
	set = aw_memory_map(sizeof(*set));
	if (!set) {
		aw_log(AW_LOG_ERROR, "no memory to hand records over to the proxy process");
		return;
	}
	set->choice = choice;
	guard_begin(&guard);
	do {
		set->count = 0;
		aw_fdtab_lock();
		aw_fdtab_await_forks();
		aw_fdtab_each(set_add_each, set);
		aw_fdtab_unlock();
		err = bridge_each(set);
	} while (set->count == BATCH_MAX && !err);
	aw_memory_unmap(set, sizeof(*set));
	(void)guard_end(&guard, 0);
}

void aw_framed_bridge_all(bool surviving)
{
	bridge_all((struct bridge_choice){ .surviving = surviving });
}

/* Replaces a socket by an unconnected one: its record is not this process's any more. */
static void end_record(struct aw_sock *sock)
{
	int fresh = aw_libc()->socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct aw_slot *slot = sock->slot;

	(void)aw_fdtab_drain_socket(sock);
	aw_registration_read(&sock, 1);
	aw_fdtab_lock();
	for (int fd = aw_fdtab_next_fd(sock, -1); fd >= 0; fd = aw_fdtab_next_fd(sock, fd)) {
		aw_log(AW_LOG_ERROR,
		       "fd %d ends: its record is the former user's, and was not handed to the proxy process",
		       fd);
		if (fresh < 0 || aw_registration_swap(sock, fd, fresh) != 0)
			aw_libc()->close(fd);
	}
	aw_fdtab_drop_slot(sock);
	aw_fdtab_drop(sock);
	aw_fdtab_release(sock);
	aw_fdtab_unlock();
	aw_arena_leave(slot);
	if (fresh >= 0)
		aw_libc()->close(fresh);
}

/* Makes the first FRAMED socket STARTING, and holds it. */
static void claim_first(struct aw_sock *sock, int fd, void *arg) AW_REQUIRES(aw_fdtab_mutex)
{
	struct aw_sock **found = arg;

	(void)fd;
	if (*found || sock->state != AW_FD_FRAMED)
		return;
	aw_fdtab_hold(sock);
	aw_fdtab_set_state(sock, AW_FD_STARTING);
	*found = sock;
}

void aw_framed_give_up(void)
{
	struct aw_sock *sock;
	struct guard guard;

	guard_begin(&guard);
	do {
		sock = NULL;
		aw_fdtab_lock();
		aw_fdtab_each(claim_first, &sock);
		aw_fdtab_unlock();
		if (sock)
			end_record(sock);
	} while (sock);
	atomic_store(&aw_slots_given_up, true);
	aw_slot_stop_flushes();
	aw_slot_drain_copies();
	(void)aw_fdtab_drain_all();
	aw_arena_abandon();
	aw_slot_drop_copies();
	atomic_store(&aw_slots_given_up, false);
	(void)guard_end(&guard, 0);
}

void aw_framed_bridge_owing(bool ending)
{
	bridge_all((struct bridge_choice){ .owing = true, .ending = ending });
}

void aw_framed_follow_all(void)
{
	uint64_t proxy;
	int saved = errno;

	/* A sandbox begins without FRAMED fds. */
	if (aw_sandbox_is_on() || aw_fdtab_is_vfork_child())
		return;
	atomic_store(&aw_framed_followed, aw_arena_bridges());
	proxy = aw_proxy_id();
	if (proxy)
		bridge_all((struct bridge_choice){ .proxy = proxy });
	errno = saved;
}

void aw_framed_follow_one(int fd)
{
	struct aw_slot *slot = aw_framed_slot(fd);

	if (slot && !slot_is_lost(slot) && atomic_load(&slot->proxy) == aw_proxy_id())
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

/* Finds the FRAMED socket behind fd and copies it to *like. The fd table may not know fd itself. */
__attribute__((noinline)) static bool find_sock(int fd, struct aw_sock *like)
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

/* Replaces, by the file of from, all surviving fds above it that are the socket with this inode. */
__attribute__((noinline)) static void replace_fds(int from, ino_t ino)
{
	for (int fd = from + 1; fd < AW_BRIDGE_BORROWED_MAX; fd++) {
		struct stat file;

		if (fstat(fd, &file) == 0 && file.st_ino == ino && S_ISSOCK(file.st_mode) &&
		    survives_exec(fd) && aw_libc()->dup3(from, fd, 0) < 0)
			aw_log(AW_LOG_ERROR, "cannot replace fd %d: %s", fd, strerror(errno));
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

		if (!survives_exec(fd) || !find_sock(fd, &own))
			continue;
		ino = own.ino;
		err = aw_swap_copy(&own, fd, request_bridge);
		if (err)
			aw_log(AW_LOG_ERROR,
			       "fd %d cannot be handed to the proxy process and stays a record: %s",
			       fd, strerror(err));
		else
			replace_fds(fd, ino);
	}
	(void)guard_end(&guard, 0);
}
