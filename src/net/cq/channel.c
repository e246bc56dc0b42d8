// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Events behind an eventfd. The eventfd's counter and the pending counts change together under the
// lock, so the fd is readable exactly while an event is pending, except for events that the thread
// which raised them is about to read. A reader takes a turn from the fd before it takes an event.
// When the event has been dropped meanwhile, the turn is void and the reader waits again.
#include "net/cq/channel.h"

#include "net/cq/sets.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

/* the channel that the calling thread serves QPs for */
static _Thread_local struct aw_channel *held;

/*
 * Reads without blocking. Linux does so with an eventfd from 5.8 on, qemu-user never does: fails with EOPNOTSUPP, while an
 * empty eventfd is EAGAIN.
 */
static ssize_t read_now(int fd)
{
	uint64_t turn;
	struct iovec iov = { .iov_base = &turn, .iov_len = sizeof(turn) };

	return preadv2(fd, &iov, 1, -1, RWF_NOWAIT);
}

int aw_channel_init(struct aw_channel *ch)
{
	ch->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (ch->fd < 0)
		return errno;
	pthread_mutex_init(&ch->lock, NULL);
	TAILQ_INIT(&ch->queue);
	ch->unwritten = 0;
	ch->reads_now = read_now(ch->fd) >= 0 || errno == EAGAIN;
	ch->epfd = -1;
	ch->hands = (struct aw_hands){ 0 };
	ch->waiters = ch->generation = 0;
	ch->arrival_ns = ch->woke_ns = 0;
	return 0;
}

void aw_channel_fini(struct aw_channel *ch)
{
	aw_sets_close(AW_SETS_CHANNEL, ch->epfd);
	close(ch->fd);
	pthread_mutex_destroy(&ch->lock);
}

void aw_source_init(struct aw_source *src, void *object, int kind)
{
	*src = (struct aw_source){ .object = object, .kind = kind };
}

/* The write cannot block: the counter has 64 bits, the pending counts have 32. */
static void add_turns(struct aw_channel *ch, uint64_t turns)
{
	ssize_t written = write(ch->fd, &turns, sizeof(turns));

	(void)written;
}

void aw_channel_raise(struct aw_channel *ch, struct aw_source *src)
{
	pthread_mutex_lock(&ch->lock);
	if (src->pending++ == 0)
		TAILQ_INSERT_TAIL(&ch->queue, src, entry);
	if (held == ch)
		ch->unwritten++;
	else
		add_turns(ch, 1);
	pthread_mutex_unlock(&ch->lock);
}

/* The oldest source gives one event and goes behind the others with the rest. */
static bool take(struct aw_channel *ch, void **object, int *kind)
{
	struct aw_source *src = TAILQ_FIRST(&ch->queue);

	if (!src)
		return false;
	*object = src->object;
	*kind = src->kind;
	TAILQ_REMOVE(&ch->queue, src, entry);
	src->taken++;
	if (--src->pending > 0)
		TAILQ_INSERT_TAIL(&ch->queue, src, entry);
	return true;
}

/*
 * Takes one turn back from the fd without blocking; false when readers have taken all of them. The caller holds the lock: where
 * the kernel cannot read without blocking, all readers do, so that the turn which poll(2) has seen is still there.
 */
static bool take_turn(struct aw_channel *ch)
{
	struct pollfd pollfd = { .fd = ch->fd, .events = POLLIN };
	uint64_t turn;

	if (ch->reads_now)
		return read_now(ch->fd) > 0;
	return poll(&pollfd, 1, 0) > 0 && read(ch->fd, &turn, sizeof(turn)) > 0;
}

/* Waits as read(2) on the fd does, but for SA_RESTART, and leaves the turn there. */
static int await_turn(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLIN };
	int flags = fcntl(fd, F_GETFL);
	int ready = poll(&pollfd, 1, flags >= 0 && !(flags & O_NONBLOCK) ? -1 : 0);

	if (ready == 0)
		return EAGAIN;
	return ready < 0 ? errno : 0;
}

static int read_under_lock(struct aw_channel *ch, void **object, int *kind)
{
	bool taken = false;
	int err;

	while (!taken) {
		err = await_turn(ch->fd);
		if (err)
			return err;
		pthread_mutex_lock(&ch->lock);
		taken = take_turn(ch) && take(ch, object, kind);
		pthread_mutex_unlock(&ch->lock);
	}
	return 0;
}

int aw_channel_read(struct aw_channel *ch, void **object, int *kind)
{
	bool taken = false;
	uint64_t turn;

	if (!ch->reads_now)
		return read_under_lock(ch, object, kind);
	while (!taken) {
		if (read(ch->fd, &turn, sizeof(turn)) < 0)
			return errno;
		pthread_mutex_lock(&ch->lock);
		taken = take(ch, object, kind);
		pthread_mutex_unlock(&ch->lock);
	}
	return 0;
}

bool aw_channel_take(struct aw_channel *ch, void **object, int *kind)
{
	bool taken;

	pthread_mutex_lock(&ch->lock);
	/* When another reader has taken the turn, the event belongs to that reader. */
	taken = !TAILQ_EMPTY(&ch->queue) && take_turn(ch) && take(ch, object, kind);
	pthread_mutex_unlock(&ch->lock);
	return taken;
}

void aw_channel_hold(struct aw_channel *ch)
{
	held = ch;
}

bool aw_channel_release(struct aw_channel *ch, void **object, int *kind)
{
	bool taken = false;

	held = NULL;
	pthread_mutex_lock(&ch->lock);
	if (ch->unwritten > 0) {
		taken = take(ch, object, kind);
		ch->unwritten--;
	}
	if (ch->unwritten > 0)
		add_turns(ch, ch->unwritten);
	ch->unwritten = 0;
	pthread_mutex_unlock(&ch->lock);
	return taken;
}

uint32_t aw_channel_forget(struct aw_channel *ch, struct aw_source *src)
{
	uint32_t forgotten;

	pthread_mutex_lock(&ch->lock);
	forgotten = src->pending;
	if (forgotten > 0)
		TAILQ_REMOVE(&ch->queue, src, entry);
	src->pending = 0;
	for (uint32_t i = 0; i < forgotten; i++) {
		if (ch->unwritten > 0)
			ch->unwritten--;
		else if (!take_turn(ch))
			break;
	}
	pthread_mutex_unlock(&ch->lock);
	return forgotten;
}
