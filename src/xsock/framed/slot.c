// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Who works on a record, and by which calls.
#include "xsock/framed/slot.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>

#include "xsock/msg.h"
#include "xsock/preload/fdtab.h"
#include "xsock/preload/libc.h"

static ssize_t call_recvmsg(int fd, struct msghdr *msg, int flags)
{
	return aw_libc()->recvmsg(fd, msg, flags);
}

static ssize_t call_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return aw_libc()->sendmsg(fd, msg, flags);
}

static int call_getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	return aw_libc()->getsockopt(fd, level, name, value, len);
}

static int call_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	return aw_libc()->setsockopt(fd, level, name, value, len);
}

static int call_shutdown(int fd, int how)
{
	return aw_libc()->shutdown(fd, how);
}

static int call_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	return aw_libc()->poll(fds, count, timeout_ms);
}

static int call_ioctl(int fd, unsigned long request, int *answer)
{
	return aw_libc()->ioctl(fd, request, answer);
}

static bool is_record(const uint8_t *data, size_t len)
{
	struct aw_xs_hello hello;

	return aw_xs_hello_get(data, len, &hello) && hello.ext & AW_XS_EXT_RECORD;
}

const struct aw_record_calls aw_slot_calls = {
	.recvmsg = call_recvmsg,
	.sendmsg = call_sendmsg,
	.getsockopt = call_getsockopt,
	.setsockopt = call_setsockopt,
	.shutdown = call_shutdown,
	.poll = call_poll,
	.ioctl = call_ioctl,
	.crc = aw_slot_crc,
	.is_record = is_record,
};

/* Where a process has died, nobody knows what of the stream it has taken or sent. */
static int lock_half(struct aw_slot *slot, pthread_mutex_t *lock)
{
	int err = pthread_mutex_lock(lock);

	if (err == EOWNERDEAD) {
		pthread_mutex_consistent(lock);
		atomic_store(&slot->broken, true);
	} else if (err) {
		return err;
	}
	if (!atomic_load_explicit(&slot->broken, memory_order_relaxed))
		return 0;
	pthread_mutex_unlock(lock);
	return ECONNRESET;
}

_Atomic(bool) aw_slot_is_over;

int aw_half_enter(struct aw_half *half, struct aw_slot *slot, pthread_mutex_t *lock)
{
	int err;

	aw_shield_raise(&half->shield);
	half->slot = slot;
	half->lock = lock;
	err = atomic_load(&aw_slot_is_over) ? EIO : lock_half(slot, lock);
	if (err)
		aw_shield_lower(&half->shield);
	return err;
}

void aw_half_leave(const struct aw_half *half)
{
	pthread_mutex_unlock(half->lock);
	aw_shield_lower(&half->shield);
}

/* Another process may be stopped within it: that is not waited for. */
void aw_half_drain(pthread_mutex_t *lock)
{
	struct timespec until;
	int err;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	err = pthread_mutex_timedlock(lock, &until);
	if (err == 0 || err == EOWNERDEAD)
		pthread_mutex_unlock(lock);
}

/* A thread's errand; its fd and its hold on the slot are its own. */
struct errand {
	struct aw_slot *slot;
	int fd;
};

static int flush(struct aw_slot *slot, int fd)
{
	struct aw_half half;
	int err = aw_half_enter(&half, slot, &slot->tx_lock);

	if (err)
		return -err;
	err = aw_record_flush(&slot->record, &aw_slot_calls, fd);
	if (err != -EAGAIN)
		atomic_store(&slot->flushing, false);
	aw_half_leave(&half);
	return err;
}

static void *run_errand(void *arg)
{
	struct errand errand = *(struct errand *)arg;
	struct pollfd pollfd = { .fd = errand.fd, .events = POLLOUT };

	free(arg);
	while (flush(errand.slot, errand.fd) == -EAGAIN)
		(void)aw_libc()->poll(&pollfd, 1, -1);
	aw_fdtab_forget(errand.fd);
	aw_libc()->close(errand.fd);
	aw_arena_unshare(errand.slot);
	return NULL;
}

/* Signals are for the program's threads. */
static bool start_thread(struct errand *errand)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, run_errand, errand);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err == 0;
}

void aw_slot_flush_later(struct aw_slot *slot, int fd)
{
	struct errand *errand;

	if (atomic_exchange(&slot->flushing, true))
		return;
	errand = malloc(sizeof(*errand));
	if (errand) {
		*errand = (struct errand){ slot, aw_libc()->fcntl(fd, F_DUPFD_CLOEXEC, 3) };
		aw_arena_share(slot);
		aw_fdtab_hide(errand->fd);
		if (errand->fd >= 0 && start_thread(errand))
			return;
		aw_arena_unshare(slot);
		aw_libc()->close(errand->fd);
		free(errand);
	}
	atomic_store(&slot->flushing, false); /* the next write will send it */
}
