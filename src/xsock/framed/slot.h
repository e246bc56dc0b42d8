// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the files of this room share: a half of a record, as long as a thread works on it.
#ifndef XSOCK_FRAMED_SLOT_H
#define XSOCK_FRAMED_SLOT_H

#include "xsock/framed/arena.h"
#include "xsock/framed/calls.h"
#include "xsock/process/shield.h"

struct aw_half {
	struct aw_shield shield;
	struct aw_slot *slot;
	pthread_mutex_t *lock;
};

/* The process has let go of its slots. */
extern _Atomic(bool) aw_slot_is_over;

/* 0, or an errno where the connection is broken: then nothing is held. */
int aw_half_enter(struct aw_half *half, struct aw_slot *slot, pthread_mutex_t *lock);
/* The same for a call on fd. EBADF: fd is another connection's, or nobody's, by now. */
int aw_half_enter_for(struct aw_half *half, struct aw_slot *slot, pthread_mutex_t *lock, int fd);
void aw_half_leave(const struct aw_half *half);
/* Once aw_slot_is_over: waits for a thread that is still at work. */
void aw_half_drain(pthread_mutex_t *lock);

/* What the program has set on the TCP socket before it is a record's, and the record obeys from then on. */
struct aw_slot_options {
	bool in_line; /* SO_OOBINLINE */
	int wanted; /* SO_RCVLOWAT */
};

struct aw_slot_options aw_slot_read_options(int fd);
void aw_slot_take_options(struct aw_slot *slot, int fd, struct aw_slot_options options);
/* They become those of near, and the record gives each byte as it comes: the proxy process reads it. */
void aw_slot_give_options(struct aw_slot *slot, int fd, int near);

/* Around a thread's waits in one call; and in between the fd that is kept for it where the program's was closed; -1: none. */
void aw_slot_begin_wait(struct aw_slot *slot);
void aw_slot_leave_wait(struct aw_slot *slot);
int aw_slot_kept(const struct aw_slot *slot);
/* Keeps one if threads wait: fd is about to be another file. */
void aw_slot_keep(struct aw_slot *slot, int fd);
/* In the child of a fork: the threads that wait are its parent's. */
void aw_slot_forget_waiters(void);

/* Sends what TCP did not take of an FPDU at once, when it has room: by a thread of its own. */
void aw_slot_flush_later(struct aw_slot *slot, int fd);

#endif
