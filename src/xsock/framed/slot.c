// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Locks a half of a record for a thread, and sends what TCP did not take at once.
#include "xsock/framed/slot.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "xsock/base/libc.h"
#include "xsock/framed/bridge.h"
#include "xsock/framed/framed.h"
#include "xsock/process/proxy.h"

#define DRAIN_NS INT64_C(1000000000) /* a process may have been stopped while it holds a lock */

_Atomic(bool) aw_slots_released;

int aw_half_enter(struct aw_half *half, struct aw_slot *slot, pthread_mutex_t *lock, int fd)
{
	int err;

	aw_shield_raise(&half->shield);
	half->slot = slot;
	half->lock = lock;
	err = atomic_load(&aw_slots_released) ? EIO : aw_slot_lock(slot, lock, fd, NULL);
	if (err)
		aw_shield_lower(&half->shield);
	return err;
}

int aw_half_enter_for(struct aw_half *half, struct aw_slot *slot, pthread_mutex_t *lock, int fd)
{
	int err;

	if (__builtin_expect(atomic_load_explicit(&slot->proxy, memory_order_relaxed) != 0, 0))
		aw_framed_follow_one(fd);
	err = aw_half_enter(half, slot, lock, fd);
	if (err || aw_framed_slot(fd) == slot)
		return err;
	aw_half_leave(half);
	return EBADF;
}

void aw_half_leave(const struct aw_half *half)
{
	pthread_mutex_unlock(half->lock);
	aw_shield_lower(&half->shield);
}

void aw_slot_drain(struct aw_slot *slot, int fd)
{
	pthread_mutex_t *locks[] = { &slot->rx_lock, &slot->tx_lock };

	for (int i = 0; i < 2; i++) {
		struct timespec until = aw_clock_after(CLOCK_MONOTONIC, DRAIN_NS);

		if (aw_slot_lock(slot, locks[i], fd, &until) == 0)
			pthread_mutex_unlock(locks[i]);
	}
}

void aw_slot_note_failure(struct aw_slot *slot, ssize_t err)
{
	if (aw_record_is_failure(err))
		atomic_store(&slot->failure, (int)-err);
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
	int fd;
};

#define STARTS (-1)
/* By slot number: the fd of this process's thread that flushes, plus one; 0: none; or STARTS. */
static _Atomic(int) flushing[AW_ARENA_SLOTS];

void aw_slot_forget_flushes(void)
{
	for (unsigned i = 0; i < AW_ARENA_SLOTS; i++) {
		int fd = atomic_load_explicit(&flushing[i], memory_order_relaxed) - 1;

		if (fd >= 0)
			aw_libc()->close(fd);
		if (fd != -1)
			atomic_store(&flushing[i], 0);
	}
}

static int flush_once(struct aw_slot *slot, int fd)
{
	struct aw_half half;
	int err = aw_half_enter(&half, slot, &slot->tx_lock, fd);

	if (err)
		return -err;
	err = aw_record_flush(&slot->record, &aw_slot_calls, fd);
	if (err == 0 && slot->fin_due)
		(void)aw_libc()->shutdown(fd, SHUT_WR);
	if (err != -EAGAIN)
		atomic_store(&flushing[aw_arena_number(slot)], 0);
	aw_half_leave(&half);
	aw_slot_note_failure(slot, err);
	return err;
}

static void *flush_run(void *arg)
{
	struct flush_job job = *(struct flush_job *)arg;
	struct pollfd pollfd = { .fd = job.fd, .events = POLLOUT };

	free(arg);
	while (flush_once(job.slot, job.fd) == -EAGAIN)
		(void)aw_libc()->poll(&pollfd, 1, -1);
	aw_fdtab_forget(job.fd);
	aw_libc()->close(job.fd);
	aw_arena_leave(job.slot);
	return NULL;
}

bool aw_slot_flush_later(struct aw_slot *slot, int fd)
{
	_Atomic(int) *flush = &flushing[aw_arena_number(slot)];
	struct flush_job *job;
	int none = 0;

	if (!atomic_compare_exchange_strong(flush, &none, STARTS))
		return true;
	job = malloc(sizeof(*job));
	if (job) {
		*job = (struct flush_job){ slot, aw_libc()->fcntl(fd, F_DUPFD_CLOEXEC, 3) };
		aw_arena_hold(slot);
		if (job->fd >= 0) {
			job->fd = aw_proxy_move_high(job->fd);
			aw_fdtab_hide(job->fd);
			atomic_store(flush, job->fd + 1);
		}
		if (job->fd >= 0 && aw_thread_start(flush_run, job) == 0)
			return true;
		aw_arena_leave(slot);
		if (job->fd >= 0) {
			aw_fdtab_forget(job->fd);
			aw_libc()->close(job->fd);
		}
		free(job);
	}
	atomic_store(flush, 0);
	return false;
}
