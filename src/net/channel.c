// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Events behind an eventfd. Its counter and the pending counts are changed together under the
// lock, so the fd is readable exactly while an event is pending. A reader takes its turn from the
// fd before the lock: a turn whose event was forgotten meanwhile finds nothing and is void.
#include "net/channel.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

int aw_channel_init(struct aw_channel *ch)
{
	ch->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (ch->fd < 0)
		return errno;
	pthread_mutex_init(&ch->lock, NULL);
	TAILQ_INIT(&ch->queue);
	return 0;
}

void aw_channel_fini(struct aw_channel *ch)
{
	close(ch->fd);
	pthread_mutex_destroy(&ch->lock);
}

void aw_source_init(struct aw_source *src, void *object, int kind)
{
	*src = (struct aw_source){ .object = object, .kind = kind };
}

void aw_channel_raise(struct aw_channel *ch, struct aw_source *src)
{
	uint64_t one = 1;
	ssize_t written;

	pthread_mutex_lock(&ch->lock);
	if (src->pending++ == 0)
		TAILQ_INSERT_TAIL(&ch->queue, src, entry);
	/* Cannot block: the counter has 64 bits, the pending counts have 32. */
	written = write(ch->fd, &one, sizeof(one));
	(void)written;
	pthread_mutex_unlock(&ch->lock);
}

/* The oldest source gives one event and goes behind the others with the rest. */
static struct aw_source *take(struct aw_channel *ch)
{
	struct aw_source *src = TAILQ_FIRST(&ch->queue);

	if (!src)
		return NULL;
	TAILQ_REMOVE(&ch->queue, src, entry);
	src->taken++;
	if (--src->pending > 0)
		TAILQ_INSERT_TAIL(&ch->queue, src, entry);
	return src;
}

int aw_channel_read(struct aw_channel *ch, void **object, int *kind)
{
	struct aw_source *src = NULL;
	uint64_t turn;

	while (!src) {
		if (read(ch->fd, &turn, sizeof(turn)) < 0)
			return errno;
		pthread_mutex_lock(&ch->lock);
		src = take(ch);
		if (src) {
			*object = src->object;
			*kind = src->kind;
		}
		pthread_mutex_unlock(&ch->lock);
	}
	return 0;
}

/* Takes one turn back from the fd, blocking or not as it may be; false when readers have all. */
static bool take_turn(struct aw_channel *ch)
{
	uint64_t turn;
	struct iovec iov = { .iov_base = &turn, .iov_len = sizeof(turn) };

	return preadv2(ch->fd, &iov, 1, -1, RWF_NOWAIT) > 0;
}

uint32_t aw_channel_forget(struct aw_channel *ch, struct aw_source *src)
{
	uint32_t forgotten;

	pthread_mutex_lock(&ch->lock);
	forgotten = src->pending;
	if (forgotten > 0)
		TAILQ_REMOVE(&ch->queue, src, entry);
	src->pending = 0;
	for (uint32_t i = 0; i < forgotten && take_turn(ch); i++)
		;
	pthread_mutex_unlock(&ch->lock);
	return forgotten;
}
