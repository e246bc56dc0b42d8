// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A number and its record change at one moment. The kernel's table and this library's cannot change together, so there is a third
// state for the time between, LEAVING. Every order of the steps below runs in tests/xsock/test_number.c.
//
// A call that changes the file of a number (close, dup2, ...):  A thread that works on a record by the number:
//   1. makes it LEAVING: no thread begins to work on the          1. counts itself among the number's users
//      record by it                                               2. looks again: is it FRAMED, with that slot?
//   2. waits until the number has no users                        3. yes: works on the record, under the half's lock
//   3. keeps a copy of the file for threads that sleep            4. leaves the users
//   4. makes the kernel's call                                    no: leaves the users, waits while the number is LEAVING
//   5. stores what the number is now; after a call that failed    and looks what it is then
//      what it was
//
// close(2) frees the number long before it returns where SO_LINGER has it wait. A thread that meets a LEAVING number therefore looks
// itself whether the kernel's table has changed, and does step 5. A thread that gets the number from the kernel does so, too. `turn`
// tells the first thread then that its change is over. A user may take the table's lock: no thread drains with it.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "xsock/base/libc.h"
#include "xsock/process/fdtab_impl.h"

#define DRAIN_NS INT64_C(1000000000)
#define YIELDS 64 /* looks before a thread that drains sleeps between them */
#define NAP_NS 50000

static unsigned turns AW_GUARDED_BY(aw_fdtab_mutex);

/* A socket that fd has left while threads were in its record by that number; held. */
struct left_sock {
	struct left_sock *next;
	struct aw_sock *sock;
	int fd;
};
static struct left_sock *left_socks AW_GUARDED_BY(aw_fdtab_mutex);
static struct aw_pool left_pool = { .bytes = sizeof(struct left_sock) };

static bool is_of_file(const struct aw_sock *sock, const struct stat *file)
{
	return file->st_dev == sock->dev &&
	       (file->st_ino == sock->ino ||
		(sock->swapped_ino && file->st_ino == sock->swapped_ino));
}

/* Returns whether fd, which is LEAVING, is another file by now, or none, in the kernel's table. */
static bool has_left(int fd) AW_REQUIRES(aw_fdtab_mutex)
{
	const struct aw_entry *entry = &aw_fdtab_entries[fd];
	struct stat file;

	if (aw_fdtab_is_vfork_child())
		return false;
	if (fstat(fd, &file) != 0)
		return entry->before;
	return entry->before ? !is_of_file(entry->before, &file) : is_of_file(entry->next, &file);
}

/*
 * Makes fd one of sock's. Another fd of sock may have been swapped since the kernel's call: then fd is the TCP socket yet, and
 * becomes the pair's end like the others. False: fd is another file, or sock is plain TCP by now.
 */
static bool join_socket(int fd, struct aw_sock *sock) AW_REQUIRES(aw_fdtab_mutex)
{
	struct stat file;

	if (sock->state == AW_FD_NONE || fstat(fd, &file) != 0 || !is_of_file(sock, &file))
		return false;
	if (file.st_ino != sock->ino && !aw_fdtab_replace(fd, aw_fdtab_next_fd(sock, -1))) {
		aw_log(AW_LOG_ERROR, "fd %d has lost its connection: %s", fd, strerror(errno));
		aw_fdtab_attach(fd, sock);
		aw_fdtab_disconnect(sock);
		aw_fdtab_detach(fd, AW_FD_NONE);
		return false;
	}
	aw_fdtab_attach(fd, sock);
	return true;
}

static void release_both(struct aw_sock *before, struct aw_sock *next) AW_REQUIRES(aw_fdtab_mutex)
{
	if (before)
		aw_fdtab_release(before);
	if (next)
		aw_fdtab_release(next);
}

/* Step 5. Waits while the socket is STARTING; another thread may do the step meanwhile. */
static void settle_number(int fd, bool changed) AW_REQUIRES(aw_fdtab_mutex)
{
	struct aw_entry *entry = &aw_fdtab_entries[fd], old = *entry;
	struct aw_sock *sock = changed ? old.next : old.before;

	while (sock && sock->state == AW_FD_STARTING) {
		aw_fdtab_await_change();
		if (entry->turn != old.turn)
			return;
	}
	*entry = (struct aw_entry){ 0 };
	if (!sock || !join_socket(fd, sock))
		aw_fdtab_store_state(fd, changed ? AW_FD_NONE : old.was);
	release_both(old.before, old.next);
	aw_fdtab_note_change();
}

void aw_fdtab_cancel_change(int fd)
{
	struct aw_entry *entry = &aw_fdtab_entries[fd], old = *entry;

	if (!entry->turn)
		return;
	*entry = (struct aw_entry){ 0 };
	release_both(old.before, old.next);
	aw_fdtab_note_change();
}

void aw_fdtab_await_left_locked(int fd)
{
	while (aw_fdtab_state(fd) == AW_FD_LEAVING) {
		if (has_left(fd))
			settle_number(fd, true);
		else
			aw_fdtab_await_change_briefly();
	}
}

void aw_fdtab_await_left(int fd)
{
	if (aw_fdtab_state(fd) != AW_FD_LEAVING)
		return;
	aw_fdtab_lock();
	aw_fdtab_await_left_locked(fd);
	aw_fdtab_unlock();
}

bool aw_fdtab_drain(int fd)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	int64_t end_ns = aw_now_ns() + DRAIN_NS;

	/* Behind the number's new state: a user's count comes before its look. */
	atomic_thread_fence(memory_order_seq_cst);
	for (int i = 0; atomic_load(aw_fdtab_users_of(fd)); i++) {
		if (i < YIELDS)
			sched_yield();
		else if (aw_now_ns() >= end_ns)
			return false;
		else
			nanosleep(&nap, NULL);
	}
	return true;
}

void aw_fdtab_hold_users(struct aw_sock *sock, int fd)
{
	struct left_sock *left = aw_pool_alloc(&left_pool);

	aw_fdtab_hold(sock);
	if (!left)
		return; /* the slot stays taken */
	*left = (struct left_sock){ left_socks, sock, fd };
	left_socks = left;
}

void aw_fdtab_release_left(void)
{
	struct left_sock **at = &left_socks;

	while (*at) {
		struct left_sock *left = *at;

		if (atomic_load(aw_fdtab_users_of(left->fd))) {
			at = &left->next;
			continue;
		}
		*at = left->next;
		aw_fdtab_release(left->sock);
		aw_pool_free(&left_pool, left);
	}
}

static bool is_socket(const struct aw_sock *sock, int fd, const void *wanted)
{
	(void)fd;
	return sock == wanted;
}

bool aw_fdtab_drain_socket(const struct aw_sock *sock)
{
	bool drained = true;

	for (int fd = aw_fdtab_find(0, is_socket, sock); fd >= 0;
	     fd = aw_fdtab_find(fd + 1, is_socket, sock))
		drained &= aw_fdtab_drain(fd);
	return drained;
}

bool aw_fdtab_drain_all(void)
{
	bool drained = true;

	for (int fd = 0, end = (int)aw_fdtab_end(); fd < end; fd++)
		drained &= aw_fdtab_drain(fd);
	return drained;
}

/* Returns the socket behind from, which another thread may be closing; NULL: the table knows none. */
static struct aw_sock *find_next(int from) AW_REQUIRES(aw_fdtab_mutex)
{
	if (aw_fdtab_state(from) == AW_FD_LEAVING)
		return aw_fdtab_entries[from].before;
	if (aw_fdtab_state(from) == AW_FD_CANDIDATE)
		return aw_fdtab_get_or_add(from);
	return aw_fdtab_get(from);
}

/* Step 1. Returns the slot whose record other threads may be in by fd, or NULL. */
static struct aw_slot *begin_leaving(struct aw_change *change) AW_REQUIRES(aw_fdtab_mutex)
{
	int fd = change->fd;
	struct aw_entry *entry = &aw_fdtab_entries[fd];
	struct aw_sock *before;

	before = aw_fdtab_get_started(fd);
	if (before && before == change->next)
		return NULL; /* the number stays one of its socket's */
	change->before = before || entry->sock ? AW_FD_NONE : aw_fdtab_state(fd);
	if (!before && !change->next) {
		aw_fdtab_detach(fd, AW_FD_NONE);
		return NULL;
	}
	if (before)
		aw_fdtab_hold(before);
	if (change->next)
		aw_fdtab_hold(change->next);
	aw_fdtab_detach(fd, AW_FD_LEAVING);
	/* The peer is to see the reset before it sees the end of the pair. */
	if (before && before->is_pair && !before->fds && before->linger.l_onoff &&
	    !before->linger.l_linger)
		aw_fdtab_close_beside(before);
	if (++turns == 0)
		turns = 1;
	change->turn = turns;
	*entry = (struct aw_entry){
		.before = before,
		.next = change->next,
		.turn = turns,
		.was = change->before,
	};
	aw_fdtab_note_number(fd);
	return before ? before->slot : NULL;
}

void aw_fdtab_begin_change(struct aw_change *change, int fd, int from)
{
	struct aw_slot *slot = NULL;

	*change = (struct aw_change){ .fd = fd };
	if ((aw_fdtab_state(fd) == AW_FD_NONE && aw_fdtab_state(from) == AW_FD_NONE) ||
	    fd >= AW_FDTAB_MAX || aw_fdtab_is_vfork_child())
		return;
	aw_fdtab_lock();
	change->next = find_next(from);
	if (change->next)
		aw_fdtab_hold(change->next);
	if (fd >= 0)
		slot = begin_leaving(change);
	aw_fdtab_unlock();
	if (!slot)
		return;
	/* A thread that does not come out keeps the slot taken (aw_fdtab_detach). */
	(void)aw_fdtab_drain(fd);
	if (aw_fdtab_hooks.keep_slot)
		aw_fdtab_hooks.keep_slot(slot, fd);
}

int aw_fdtab_end_change(struct aw_change *change, int result)
{
	struct aw_sock *next = change->next;
	int saved = errno;

	if (change->turn || next) {
		aw_fdtab_lock();
		if (change->turn && aw_fdtab_entries[change->fd].turn == change->turn) {
			settle_number(change->fd, result >= 0);
		} else if (change->fd < 0 && result >= 0 && result < AW_FDTAB_MAX) {
			while (next->state == AW_FD_STARTING)
				aw_fdtab_await_change();
			if (!join_socket(result, next))
				aw_fdtab_detach(result, AW_FD_NONE);
		}
		if (next)
			aw_fdtab_release(next);
		aw_fdtab_unlock();
	} else if (change->fd < 0 && result >= 0) {
		aw_fdtab_forget(result);
	} else if (change->before != AW_FD_NONE && result < 0) {
		aw_fdtab_store_state(change->fd, change->before);
	}
	errno = saved;
	return result;
}

/*
 * The parent's threads end neither their changes nor their starts in the child, whose table of the kernel's is that of the moment of
 * the fork. A socket whose last number was LEAVING, or that was STARTING, is the parent's alone.
 */
void aw_fdtab_end_parents_changes(int end)
{
	for (int fd = 0; fd < end; fd++) {
		struct aw_entry *entry = &aw_fdtab_entries[fd];
		struct aw_sock *sock;

		if (entry->sock && entry->sock->state == AW_FD_STARTING) {
			aw_fdtab_disconnect(entry->sock);
			aw_fdtab_drop(entry->sock);
		}
		if (!entry->turn)
			continue;
		sock = has_left(fd) ? entry->next : entry->before;
		*entry = (struct aw_entry){ 0 };
		if (sock && !sock->fds)
			aw_libc()->close(fd);
		if (!sock || !join_socket(fd, sock))
			aw_fdtab_store_state(fd, AW_FD_NONE);
	}
}
