// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Locks a half of a record for a thread, and sends what TCP did not take at once.
#include "xsock/framed/slot.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "xsock/base/libc.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/process/proxy.h"

#define DRAIN_NS INT64_C(1000000000) /* a process may have been stopped while it holds a lock */

_Atomic(bool) aw_slots_released, aw_slots_given_up;

/* Counts the thread among fd's users, under a shield. */
static void half_begin(struct aw_half *half, struct aw_slot *slot, pthread_mutex_t *lock, int fd)
{
	half->slot = slot;
	half->lock = lock;
	half->fd = fd;
	aw_shield_raise(&half->shield);
	aw_fdtab_enter(fd);
}

static void half_end(const struct aw_half *half)
{
	aw_fdtab_leave(half->fd);
	aw_shield_lower(&half->shield);
}

static int half_lock(struct aw_half *half)
{
	return atomic_load(&aw_slots_released)
		       ? EIO
		       : aw_slot_lock(half->slot, half->lock, half->fd, NULL);
}

int aw_half_enter(struct aw_half *half, struct aw_slot *slot, pthread_mutex_t *lock, int fd)
{
	int err;

	half_begin(half, slot, lock, fd);
	err = !atomic_load(&aw_slots_given_up) && aw_arena_has(slot) ? half_lock(half) : EBADF;
	if (err)
		half_end(half);
	return err;
}

int aw_half_enter_for(struct aw_half *half, struct aw_slot *slot, pthread_mutex_t *lock, int fd)
{
	int err;

	if (__builtin_expect(atomic_load_explicit(&slot->proxy, memory_order_relaxed) != 0, 0))
		aw_framed_follow_one(fd);
	half_begin(half, slot, lock, fd);
	err = aw_fdtab_holds(fd, slot) ? half_lock(half) : EBADF;
	if (err) {
		half_end(half);
		return err;
	}
	/* The lock's holder may have been stopped for so long that the number is another file's by now. */
	if (__builtin_expect(aw_fdtab_holds(fd, slot), 1))
		return 0;
	aw_half_leave(half);
	return EBADF;
}

int aw_half_enter_either(struct aw_half *half, struct aw_slot *slot, pthread_mutex_t *lock, int fd)
{
	bool is_copy = aw_fdtab_state(fd) == AW_FD_INTERNAL;

	return (is_copy ? aw_half_enter : aw_half_enter_for)(half, slot, lock, fd);
}

/* Unchecked: the analysis does not follow the pointer to the lock. */
void aw_half_leave(const struct aw_half *half) AW_UNCHECKED
{
	pthread_mutex_unlock(half->lock);
	half_end(half);
}

void aw_slot_send_terminate(struct aw_slot *slot, int fd)
{
	struct aw_half half;

	if (aw_half_enter_either(&half, slot, &slot->tx_lock, fd) != 0)
		return;
	aw_record_end(&slot->record, fd);
	aw_half_leave(&half);
}

void aw_slot_note_failure(struct aw_slot *slot, ssize_t err)
{
	if (aw_record_is_failure(err))
		atomic_store(&slot->failure, (int)-err);
}

void aw_framed_keep_failure(int fd, int err)
{
	struct aw_slot *slot = aw_framed_slot(fd);

	if (slot)
		aw_slot_note_failure(slot, -err);
}

ssize_t aw_slot_take_failure(struct aw_slot *slot, ssize_t err)
{
	int failure = 0;

	if (__builtin_expect(atomic_load_explicit(&slot->failure, memory_order_relaxed) != 0, 0))
		failure = atomic_exchange(&slot->failure, 0);
	return failure ? -failure : err;
}

/* The work of a thread that flushes; fd and the hold on the slot belong to the thread. */
struct flush_job {
	struct aw_slot *slot;
	int fd, stop_fd;
};
/*
 * By slot number, as in the arrays below, whose last place is for slots that the process has given up: the newest thread's, which
 * copies it before another one can be started.
 */
static struct flush_job jobs[AW_ARENA_SLOTS + 1];

#define STARTS (-1)
#define STOPS (-2)
/* By slot number: the fd of this process's thread that flushes, plus one; 0: none; or STARTS, STOPS. */
static _Atomic(int) flushing[AW_ARENA_SLOTS + 1];
/* Such threads, until they have left the slot; each count is a futex. */
static _Atomic(uint32_t) flushers[AW_ARENA_SLOTS + 1];
static int stop_fd = -1; /* an eventfd that wakes them all; guarded by stop_lock */
static pthread_mutex_t stop_lock = PTHREAD_MUTEX_INITIALIZER;

void aw_slot_forget_flushes(void)
{
	for (unsigned i = 0; i < AW_ARENA_SLOTS; i++) {
		int fd = atomic_load_explicit(&flushing[i], memory_order_relaxed) - 1;

		if (fd >= 0)
			aw_fdtab_close_hidden(fd);
		if (fd != -1)
			atomic_store(&flushing[i], 0);
		if (atomic_load_explicit(&flushers[i], memory_order_relaxed))
			atomic_store(&flushers[i], 0);
	}
	stop_fd = -1; /* the parent reads that one, too */
	pthread_mutex_init(&stop_lock, NULL);
}

bool aw_slot_has_debt(const struct aw_slot *slot)
{
	return aw_slot_owes(slot) &&
	       (atomic_load(&flushing[aw_arena_number(slot)]) || aw_arena_is_alone(slot));
}

static int flush_once(struct aw_slot *slot, int fd)
{
	struct aw_half half;
	int err = aw_half_enter(&half, slot, &slot->tx_lock, fd);

	if (err) {
		atomic_store(&flushing[aw_arena_number(slot)], 0);
		return -err;
	}
	err = aw_record_flush(&slot->record, fd);
	if (err != -EAGAIN)
		atomic_store(&flushing[aw_arena_number(slot)], 0);
	aw_half_leave(&half);
	aw_slot_note_failure(slot, err);
	return err;
}

/* Closes the job's fd, and leaves its slot. */
static void flush_leave(const struct flush_job *job)
{
	_Atomic(uint32_t) *count = &flushers[aw_arena_number(job->slot)];

	if (job->fd >= 0) {
		aw_fdtab_forget(job->fd);
		aw_libc()->close(job->fd);
	}
	aw_arena_leave(job->slot);
	atomic_fetch_sub(count, 1);
	(void)syscall(SYS_futex, count, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void *flush_run(void *arg)
{
	struct flush_job job = *(struct flush_job *)arg;
	struct pollfd fds[] = { { .fd = job.fd, .events = POLLOUT },
				{ .fd = job.stop_fd, .events = POLLIN } };
	_Atomic(int) *flush = &flushing[aw_arena_number(job.slot)];
	int err;

	while ((err = flush_once(job.slot, job.fd)) == -EAGAIN && atomic_load(flush) != STOPS)
		(void)aw_libc()->poll(fds, 2, -1);
	if (err == -EAGAIN) /* the word is still this thread's */
		atomic_store(flush, 0);
	flush_leave(&job);
	return NULL;
}

void aw_slot_stop_flush(struct aw_slot *slot)
{
	unsigned number = aw_arena_number(slot);
	_Atomic(uint32_t) *count = &flushers[number];
	struct timespec until;
	int fd = atomic_load(&flushing[number]);
	uint64_t bell = 1;
	uint32_t threads;

	if (!atomic_load(count))
		return;
	pthread_mutex_lock(&stop_lock);
	if (fd > 0)
		(void)atomic_compare_exchange_strong(&flushing[number], &fd, STOPS);
	(void)!aw_libc()->write(stop_fd, &bell, sizeof(bell));
	/* A second at most: such a thread may wait for a lock whose holder, in another process, is stopped. */
	until = aw_clock_after(CLOCK_MONOTONIC, DRAIN_NS);
	while ((threads = atomic_load(count)) != 0 &&
	       (syscall(SYS_futex, count, FUTEX_WAIT_BITSET_PRIVATE, threads, &until, NULL,
			FUTEX_BITSET_MATCH_ANY) == 0 ||
		errno != ETIMEDOUT))
		;
	(void)!aw_libc()->read(stop_fd, &bell, sizeof(bell));
	pthread_mutex_unlock(&stop_lock);
}

void aw_slot_stop_flushes(void)
{
	for (unsigned i = 0; i < AW_ARENA_SLOTS; i++)
		if (atomic_load(&flushers[i]))
			aw_slot_stop_flush(aw_arena_find(i));
}

static int stop_fd_open(void)
{
	int fd;

	pthread_mutex_lock(&stop_lock);
	if (stop_fd < 0) {
		fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (fd >= 0) {
			stop_fd = aw_proxy_move_high(fd);
			aw_fdtab_hide(stop_fd);
		}
	}
	fd = stop_fd;
	pthread_mutex_unlock(&stop_lock);
	return fd;
}

bool aw_slot_flush_later(struct aw_slot *slot, int fd)
{
	unsigned number = aw_arena_number(slot);
	_Atomic(int) *flush = &flushing[number];
	struct flush_job *job = &jobs[number];
	int none = 0;

	if (!atomic_compare_exchange_strong(flush, &none, STARTS))
		return true;
	*job = (struct flush_job){ slot, aw_libc()->fcntl(fd, F_DUPFD_CLOEXEC, 3), stop_fd_open() };
	aw_arena_hold(slot);
	atomic_fetch_add(&flushers[number], 1);
	if (job->fd >= 0) {
		job->fd = aw_proxy_move_high(job->fd);
		aw_fdtab_hide(job->fd);
		atomic_store(flush, job->fd + 1);
	}
	if (job->fd >= 0 && job->stop_fd >= 0 && aw_thread_start(flush_run, job) == 0)
		return true;
	flush_leave(job);
	atomic_store(flush, 0);
	return false;
}
