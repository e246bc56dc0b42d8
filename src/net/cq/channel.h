// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A queue of events behind a real, pollable fd: completion channels and async events. Each source
// is queued at most once per kind and counts what is pending, so memory is bounded.
#ifndef NET_CHANNEL_H
#define NET_CHANNEL_H

#include "net/cq/hands.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* Embedded in an object that raises events. Guarded by the channel's lock. */
struct aw_source {
	TAILQ_ENTRY(aw_source) entry;
	void *object; /* the object that a reader gets */
	int kind; /* the kind of event that a reader gets */
	uint32_t pending; /* raised and not read */
	/* events read so far; the destroyer of the object waits until as many are acknowledged */
	uint32_t taken;
};

/* The key of event_fd in the sets of a channel: no handle is this large. */
#define AW_CHANNEL_EVENT UINT64_MAX
/* In place of the handle of the one QP that is lent to a channel's program: several are, or none. */
#define AW_CHANNEL_MANY UINT32_MAX
#define AW_CHANNEL_NONE (UINT32_MAX - 1)

struct aw_channel {
	/* the program's, which may set O_NONBLOCK: event_fd, or an epoll set with event_fd and the sockets of QPs */
	int fd;
	int event_fd; /* net/base/event_fd.h: raised and lowered */
	pthread_mutex_t lock;
	TAILQ_HEAD(, aw_source) queue;
	bool raised; /* event_fd was raised and not lowered since, except by read(2) */
	/* channel_wait.c */
	_Atomic int
		epfd; /* event_fd and the sockets of QPs lent to the channel; -1 before a first sleep */
	/* the process's when the channel, or epfd, was made; a child does not use its parent's sets */
	_Atomic uint32_t generation;
	_Atomic uint32_t waiters; /* threads that sleep on epfd */
	struct aw_hands hands; /* busy-poll ownership of these threads: a turn is a wake */
	_Atomic uint64_t woke_ns; /* when one last woke */
	_Atomic uint64_t arrival_ns; /* when bytes last came while one slept (net/qp/lend.c) */
	/* QPs are lent to the program's own poll(2) or epoll_wait: their sockets join fd, not epfd */
	_Atomic bool outside;
	_Atomic uint32_t
		lent_only; /* the handle of the one QP that is lent to the channel, or AW_CHANNEL_MANY, _NONE */
	_Atomic uint64_t
		took_ns; /* when a thread last took an event, or looked for one, without sleeping */
	_Atomic uint32_t events_taken; /* by a thread that did not sleep */
	_Atomic bool vain; /* such a QP has woken the program for no event: none is lent so again */
};

/* 0, or EMFILE, ENFILE, ENOMEM. init_for_qps: also QPs can be lent to the channel (net/qp/lend.h). */
int aw_channel_init(struct aw_channel *ch);
int aw_channel_init_for_qps(struct aw_channel *ch);

void aw_channel_fini(struct aw_channel *ch);

void aw_source_init(struct aw_source *src, void *object, int kind);

/* Makes one more event of src readable. Any thread; never blocks. */
void aw_channel_raise(struct aw_channel *ch, struct aw_source *src);

/*
 * Takes the oldest event, and blocks unless event_fd has O_NONBLOCK. 0, or EAGAIN, EINTR. *object and
 * *kind are written on success.
 */
int aw_channel_read(struct aw_channel *ch, void **object, int *kind);

/*
 * Between aw_channel_hold and aw_channel_release the calling thread serves QPs, and an event of
 * ch that it raises does not raise the fd. aw_channel_release takes the oldest event if there is one,
 * which the caller must handle, and raises the fd if it leaves others. False: there was none.
 */
void aw_channel_hold(struct aw_channel *ch);
bool aw_channel_release(struct aw_channel *ch, void **object, int *kind);

/* Takes an event if there is one now, whatever O_NONBLOCK says. */
bool aw_channel_take(struct aw_channel *ch, void **object, int *kind);

/* Drops unread events of src (before its object goes). Returns how many there were. */
uint32_t aw_channel_forget(struct aw_channel *ch, struct aw_source *src);

#endif
