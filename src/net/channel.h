// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A queue of events behind a real, pollable fd: completion channels and async events. Each source
// is queued at most once per kind and counts what is pending, so memory is bounded.
#ifndef NET_CHANNEL_H
#define NET_CHANNEL_H

#include <pthread.h>
#include <stdint.h>
#include <sys/queue.h>

/* Embedded in what raises events. Guarded by the channel's lock. */
struct aw_source {
	TAILQ_ENTRY(aw_source) entry;
	void *object; /* what a reader gets */
	int kind; /* likewise */
	uint32_t pending; /* raised and not read */
	uint32_t
		taken; /* read, ever: who destroys the object waits for as many to be acknowledged */
};

struct aw_channel {
	int fd; /* eventfd in semaphore mode, close-on-exec; the program may set O_NONBLOCK */
	pthread_mutex_t lock;
	TAILQ_HEAD(, aw_source) queue;
};

/* 0, or EMFILE, ENFILE, ENOMEM. */
int aw_channel_init(struct aw_channel *ch);
void aw_channel_fini(struct aw_channel *ch);

void aw_source_init(struct aw_source *src, void *object, int kind);

/* Makes one more event of src readable. Any thread; never blocks. */
void aw_channel_raise(struct aw_channel *ch, struct aw_source *src);

/*
 * Takes the oldest event. Blocks as the fd's O_NONBLOCK says. 0, or EAGAIN, EINTR. *object and
 * *kind are written on success.
 */
int aw_channel_read(struct aw_channel *ch, void **object, int *kind);

/* Forgets unread events of src (before its object goes). Returns how many there were. */
uint32_t aw_channel_forget(struct aw_channel *ch, struct aw_source *src);

#endif
