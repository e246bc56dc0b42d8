// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A queue of events behind a real, pollable fd: completion channels and async events. Each source
// is queued at most once per kind and counts what is pending, so memory is bounded.
#ifndef NET_CHANNEL_H
#define NET_CHANNEL_H

#include "net/hands.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
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
	TAILQ_ENTRY(aw_channel) entry; /* among all; guarded by channel.c's lock */
	int fd; /* eventfd in semaphore mode, close-on-exec; the program may set O_NONBLOCK */
	uint32_t made_in; /* the engine's generation: a child leaves its parent's fds alone */
	bool shared; /* fd is the parent's: a child that carries on got none of its own */
	pthread_mutex_t lock;
	TAILQ_HEAD(, aw_source) queue;
	uint32_t
		unwritten; /* events of queue that fd does not tell of (yet): for who raised them */
	/* channel_wait.c */
	_Atomic int
		epfd; /* fd and the sockets of QPs lent to the channel; -1 before a first sleep */
	_Atomic uint32_t generation; /* of the engine when epfd was made: a child's are others */
	_Atomic uint32_t waiters; /* threads that sleep on epfd */
	struct aw_hands hands; /* theirs: a turn is a wake */
	_Atomic uint64_t woke_ns; /* when one last woke */
	_Atomic uint64_t arrival_ns; /* when octets last came while one slept (net/lend.c) */
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

/*
 * For a thread that is about to serve QPs, and for the same when it has: events of ch that it raises
 * in between wait for it in memory. It takes one, if there is, and must take it; others that wait are
 * then told of by the fd. False: there was none.
 */
void aw_channel_hold(struct aw_channel *ch);
bool aw_channel_release(struct aw_channel *ch, void **object, int *kind);

/* An event if there is one now, whatever O_NONBLOCK says. */
bool aw_channel_take(struct aw_channel *ch, void **object, int *kind);

/* Forgets unread events of src (before its object goes). Returns how many there were. */
uint32_t aw_channel_forget(struct aw_channel *ch, struct aw_source *src);

/*
 * For net/engine.c and net/carry.c. In a child that carries on each channel has an eventfd of its own, by the same number
 * and with what waits. take_over: those that had none to get then. 0, or EMFILE, ENFILE, ENOMEM.
 */
void aw_channel_fork_prepare(void);
void aw_channel_fork_parent(void);
void aw_channel_fork_child(bool carries);
int aw_channel_take_over(void);

#endif
