// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Events behind an eventfd. The eventfd's counter and the pending counts change together under the
// lock, so the fd is readable exactly while an event is pending, except for events that the thread
// which raised them is about to read. A reader takes a turn from the fd before it takes an event.
// When the event has been dropped meanwhile, the turn is void and the reader waits again.
#include "net/cq/channel.h"

#include "net/cq/sets.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

/* the channel that the calling thread serves QPs for */
static _Thread_local struct aw_channel *held;

int aw_channel_init(struct aw_channel *ch)
{
	ch->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (ch->fd < 0)
		return errno;
	pthread_mutex_init(&ch->lock, NULL);
	TAILQ_INIT(&ch->queue);
	ch->unwritten = 0;
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

int aw_channel_read(struct aw_channel *ch, void **object, int *kind)
{
	bool taken = false;
	uint64_t turn;

	while (!taken) {
		if (read(ch->fd, &turn, sizeof(turn)) < 0)
			return errno;
		pthread_mutex_lock(&ch->lock);
		taken = take(ch, object, kind);
		pthread_mutex_unlock(&ch->lock);
	}
	return 0;
}

/* Takes one turn back from the fd without blocking; false when readers have taken all of them. */
static bool take_turn(struct aw_channel *ch)
{
	uint64_t turn;
	struct iovec iov = { .iov_base = &turn, .iov_len = sizeof(turn) };

	return preadv2(ch->fd, &iov, 1, -1, RWF_NOWAIT) > 0;
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
