// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A QP's socket in a channel's fd wakes the program (net/qp/serve.h, watchers), but another thread may receive before the program comes. A
// program may take it for fatal that the fd was readable and there is no event, so the thread that receives leaves an event of an armed CQ, as the
// watcher itself does (net/qp/channel_wait.h).
#ifndef NET_WATCHED_H
#define NET_WATCHED_H

#include "net/qp/uqp.h"

/* Changes with all that makes the fds of watchers ready. A bell may come when another thread has taken its bytes. */
struct aw_watched_seen {
	uint64_t moved; /* bytes that came, be they part of an FPDU, and that waited for room */
	uint64_t
		bells; /* and, under TLS, reads, since what they gave may be no more than a part of a record, or a ticket */
	bool over; /* the peer's end has come, or this end has no stream */
};

struct aw_watched_seen aw_watched_see(const struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* True where bytes, room or the end have come between the two. */
bool aw_watched_have_moved(const struct aw_watched_seen *before, const struct aw_watched_seen *now);

/* True with an event of an armed CQ of the channel, for no completion: no program can tell it from one whose completion it has polled already. */
bool aw_watched_wake(const struct aw_uqp *qp, const struct aw_channel *channel);

/*
 * Watchers may not find the QP's socket from here on, since the progress thread takes it back or serves it: until aw_watched_served a
 * thread that comes to the channel finds the QP by this.
 */
void aw_watched_moves(const struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* The same, where the QP is about to go to the channel's watchers. */
void aw_watched_begin(struct aw_uqp *qp, struct aw_channel *channel) AW_REQUIRES(qp->lock);

/* The QP has gone to watchers, or one of them, or the progress thread, has served it. Once it is no watcher's any more, nothing is owed. */
void aw_watched_served(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

#endif
