// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A queue of events behind a real, pollable fd: completion channels and async events. Each source
// is queued at most once per kind and counts what is pending, so memory is bounded.
#ifndef NET_CHANNEL_H
#define NET_CHANNEL_H

#include "base/thread_safety.h"
#include "net/base/event_fd.h"
#include "net/cq/activity.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* Embedded in an object that raises events. Guarded by the channel's lock, but for taken. */
struct aw_source {
	TAILQ_ENTRY(aw_source) entry;
	void *object; /* the object that a reader gets */
	int kind; /* the kind of event that a reader gets */
	uint32_t pending; /* raised and not read */
	/* events read so far; the destroyer of the object waits until as many are acknowledged */
	_Atomic uint32_t taken;
	uint32_t generation; /* the process's (net/base/fork.h) that raised what is pending */
};

/* In place of the handle of the one QP that the channel's threads serve: they serve several, or none. */
#define AW_CHANNEL_MANY UINT32_MAX

/* No handle. */
#define AW_CHANNEL_NONE UINT32_MAX

struct aw_channel {
	struct aw_event_owner owner; /* first: the owner is the channel. The fd's */
	/* the program's, which may set O_NONBLOCK: event_fd, or an epoll set with event_fd and the sockets that watchers serve */
	int fd;
	int event_fd; /* net/base/event_fd.h: raised and lowered */
	aw_mutex lock;
	TAILQ_HEAD(, aw_source) queue;
	_Atomic bool filled; /* queue is not empty: for a look without the lock */
	bool raised; /* event_fd was raised and not lowered since, except by read(2) */
	/* channel_set.c, qp/channel_wait.c */
	_Atomic int
		epfd; /* fd and the sockets of QPs that waiters serve; -1 before a first sleep */
	/* the process's when the channel, or epfd, was made; a child does not use its parent's sets */
	_Atomic uint32_t generation;
	_Atomic uint32_t waiters; /* threads that sleep on epfd */
	struct aw_activity waiting; /* of these threads, and of watchers: a turn is a wake */
	_Atomic uint64_t woke_ns; /* when one last woke */
	_Atomic uint64_t took_ns; /* when a thread last took an event without a sleep */
	_Atomic uint64_t
		arrival_ns; /* when bytes last came while one was expected (net/qp/serving.c) */
	_Atomic uint32_t
		only_qp; /* the handle of the one QP that these threads serve, or AW_CHANNEL_MANY */
	_Atomic uint32_t watched; /* QPs that watchers serve: their sockets are in fd */
	/* the tick that last asked its sets (net/qp/uqp_progress.c); guarded by net/qp/serving.c's lock */
	uint64_t asked_ns;
	/* the handle of a QP of watchers that the progress thread serves, or is about to, or AW_CHANNEL_NONE */
	_Atomic uint32_t moving;
};

/* 0, or EMFILE, ENFILE, ENOMEM. init_for_qps: threads that take its events can serve QPs (net/qp/channel_wait.h). */
int aw_channel_init(struct aw_channel *ch);
int aw_channel_init_for_qps(struct aw_channel *ch);
void aw_channel_fini(struct aw_channel *ch);

void aw_source_init(struct aw_source *src, void *object, int kind);

/* Makes one more event of src readable. Any thread; never blocks. */
void aw_channel_raise(struct aw_channel *ch, struct aw_source *src) AW_EXCLUDES(ch->lock);

/* The same, unless one of its events is there that nobody has read. */
void aw_channel_raise_once(struct aw_channel *ch, struct aw_source *src) AW_EXCLUDES(ch->lock);

/*
 * Takes the oldest event, and blocks unless event_fd has O_NONBLOCK. 0, or EAGAIN, EINTR. *object and
 * *kind are written on success.
 */
int aw_channel_read(struct aw_channel *ch, void **object, int *kind) AW_EXCLUDES(ch->lock);

/*
 * Between aw_channel_hold and aw_channel_release the calling thread serves QPs, and an event of
 * ch that it raises does not raise the fd: where none waits, that event is taken as it is raised. aw_channel_release
 * returns the event that was taken, else takes the oldest one, which the caller must handle, and raises the fd if it leaves
 * others. False: there was none.
 */
void aw_channel_hold(struct aw_channel *ch);
bool aw_channel_release(struct aw_channel *ch, void **object, int *kind) AW_EXCLUDES(ch->lock);

/* True when an event is there that nobody has taken. */
bool aw_channel_is_filled(const struct aw_channel *ch);

/* Takes an event if there is one now, whatever O_NONBLOCK says. */
bool aw_channel_take(struct aw_channel *ch, void **object, int *kind) AW_EXCLUDES(ch->lock);

/* Drops unread events of src (before its object goes). Returns how many there were. */
uint32_t aw_channel_forget(struct aw_channel *ch, struct aw_source *src) AW_EXCLUDES(ch->lock);

#endif
