// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Events behind an fd. The fd is raised and lowered under the lock, so that it is readable exactly
// while an event is pending. There are two exceptions: a thread that serves QPs does not raise the fd for
// an event that it is about to take, and a thread that blocks in read(2) lowers the fd before it
// takes an event. That thread raises the fd again when it leaves others.
#include "net/cq/channel.h"

#include "net/base/fork.h"
#include "net/cq/sets.h"
#include "ring/lock.h"

#include <errno.h>
#include <unistd.h>

/* The channel that the calling thread serves QPs for, or NULL, and the source whose event it has taken there, or NULL. */
static _Thread_local struct {
	struct aw_channel *channel;
	struct aw_source *taken;
} held __attribute__((tls_model("initial-exec")));

/* The sources in the queue know by their generation that they have left it. */
static void begin_empty(struct aw_event_owner *owner)
{
	struct aw_channel *ch = (struct aw_channel *)owner;

	pthread_mutex_init(&ch->lock, NULL);
	TAILQ_INIT(&ch->queue);
	ch->filled = false;
	ch->raised = false;
}

static int channel_init(struct aw_channel *ch, bool for_qps)
{
	ch->event_fd = aw_event_fd_open(false);
	ch->fd = for_qps && ch->event_fd >= 0 ? aw_event_fd_open_set(ch->event_fd) : ch->event_fd;
	if (ch->fd < 0) {
		int err = errno;

		if (ch->event_fd >= 0)
			close(ch->event_fd);
		return err;
	}
	ch->owner = (struct aw_event_owner){ .fd = ch->event_fd,
					     .set = for_qps ? ch->fd : -1,
					     .inherit = begin_empty };
	begin_empty(&ch->owner);
	ch->epfd = -1;
	ch->waiting = (struct aw_activity){ 0 };
	ch->waiters = 0;
	ch->generation = aw_fork_generation();
	ch->arrival_ns = ch->woke_ns = ch->took_ns = ch->asked_ns = 0;
	ch->only_qp = AW_CHANNEL_MANY;
	ch->watched = 0;
	ch->moving = AW_CHANNEL_NONE;
	aw_event_owner_add(&ch->owner);
	return 0;
}

int aw_channel_init(struct aw_channel *ch)
{
	return channel_init(ch, false);
}

int aw_channel_init_for_qps(struct aw_channel *ch)
{
	return channel_init(ch, true);
}

void aw_channel_fini(struct aw_channel *ch)
{
	aw_event_owner_remove(&ch->owner);
	aw_sets_close(AW_SETS_CHANNEL, ch->epfd);
	ch->epfd = -1; /* for a thread that still waits (verbs/channel.c) */
	if (ch->fd != ch->event_fd)
		close(ch->fd);
	close(ch->event_fd);
	pthread_mutex_destroy(&ch->lock);
}

void aw_source_init(struct aw_source *src, void *object, int kind)
{
	*src = (struct aw_source){ .object = object,
				   .kind = kind,
				   .generation = aw_fork_generation() };
}

/* Events that the parent's process has raised are the parent's. */
static uint32_t *pending(struct aw_source *src)
{
	if (src->generation != aw_fork_generation())
		src->pending = 0;
	src->generation = aw_fork_generation();
	return &src->pending;
}

/*
 * Behind each change of the queue. Pairs with the acquire in aw_channel_is_filled(): a thread that learns of an event by the fd finds it here
 * and takes the lock.
 */
static void note_filled(struct aw_channel *ch) AW_REQUIRES(ch->lock)
{
	atomic_store_explicit(&ch->filled, !TAILQ_EMPTY(&ch->queue), memory_order_release);
}

bool aw_channel_is_filled(const struct aw_channel *ch)
{
	return atomic_load_explicit(&ch->filled, memory_order_acquire);
}

/* Every event is an edge for the program's epoll sets. */
static void raise_fd(struct aw_channel *ch) AW_REQUIRES(ch->lock)
{
	ch->raised = true;
	aw_event_fd_raise(ch->event_fd);
}

static void lower_fd(struct aw_channel *ch) AW_REQUIRES(ch->lock)
{
	if (ch->raised && TAILQ_EMPTY(&ch->queue)) {
		ch->raised = false;
		aw_event_fd_lower(ch->event_fd);
	}
}

static void add_event(struct aw_channel *ch, struct aw_source *src) AW_REQUIRES(ch->lock)
{
	if ((*pending(src))++ == 0)
		TAILQ_INSERT_TAIL(&ch->queue, src, entry);
	note_filled(ch);
	if (held.channel != ch)
		raise_fd(ch);
}

/*
 * Relaxed: who destroys the source's object comes behind all that raise its events. Until the event is acknowledged the
 * object stays.
 */
static bool takes_itself(struct aw_channel *ch, struct aw_source *src)
{
	if (held.channel != ch || held.taken || aw_channel_is_filled(ch))
		return false;
	atomic_fetch_add_explicit(&src->taken, 1, memory_order_relaxed);
	held.taken = src;
	return true;
}

void aw_channel_raise(struct aw_channel *ch, struct aw_source *src)
{
	if (takes_itself(ch, src))
		return;
	aw_lock(&ch->lock);
	add_event(ch, src);
	aw_unlock(&ch->lock);
}

void aw_channel_raise_once(struct aw_channel *ch, struct aw_source *src)
{
	aw_lock(&ch->lock);
	if (*pending(src) == 0)
		add_event(ch, src);
	aw_unlock(&ch->lock);
}

/* The oldest source gives one event and goes behind the others with the rest. */
static bool channel_take(struct aw_channel *ch, void **object, int *kind) AW_REQUIRES(ch->lock)
{
	struct aw_source *src = TAILQ_FIRST(&ch->queue);

	if (!src)
		return false;
	*object = src->object;
	*kind = src->kind;
	TAILQ_REMOVE(&ch->queue, src, entry);
	atomic_fetch_add_explicit(&src->taken, 1, memory_order_relaxed);
	if (--src->pending > 0)
		TAILQ_INSERT_TAIL(&ch->queue, src, entry);
	note_filled(ch);
	lower_fd(ch);
	return true;
}

bool aw_channel_take(struct aw_channel *ch, void **object, int *kind)
{
	bool taken;

	if (!aw_channel_is_filled(ch))
		return false;
	aw_lock(&ch->lock);
	taken = channel_take(ch, object, kind);
	aw_unlock(&ch->lock);
	return taken;
}

int aw_channel_read(struct aw_channel *ch, void **object, int *kind)
{
	bool taken = aw_channel_take(ch, object, kind);

	while (!taken) {
		int err = aw_event_fd_await(ch->event_fd);

		if (err)
			return err;
		/* The fd is lowered now, whatever is in the queue. */
		aw_lock(&ch->lock);
		taken = channel_take(ch, object, kind);
		if (!TAILQ_EMPTY(&ch->queue))
			raise_fd(ch);
		aw_unlock(&ch->lock);
	}
	return 0;
}

void aw_channel_hold(struct aw_channel *ch)
{
	held.channel = ch;
}

bool aw_channel_release(struct aw_channel *ch, void **object, int *kind)
{
	struct aw_source *src = held.taken;
	bool taken = src;

	held.channel = NULL;
	held.taken = NULL;
	if (taken) {
		*object = src->object;
		*kind = src->kind;
	}
	if (!aw_channel_is_filled(ch))
		return taken;
	aw_lock(&ch->lock);
	taken = taken || channel_take(ch, object, kind);
	if (!ch->raised && !TAILQ_EMPTY(&ch->queue))
		raise_fd(ch);
	aw_unlock(&ch->lock);
	return taken;
}

uint32_t aw_channel_forget(struct aw_channel *ch, struct aw_source *src)
{
	uint32_t forgotten;

	aw_lock(&ch->lock);
	forgotten = *pending(src);
	if (forgotten > 0)
		TAILQ_REMOVE(&ch->queue, src, entry);
	src->pending = 0;
	note_filled(ch);
	lower_fd(ch);
	aw_unlock(&ch->lock);
	return forgotten;
}
