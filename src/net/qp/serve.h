// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Decides which threads serve a QP: receive for it, and send what is due. Pure: net/qp/serving.h says what was seen,
// net/qp/uqp_progress.c does what is decided.
//
// The progress thread listens to the sockets of all QPs, which costs nothing while nobody waits for a message. Where a thread
// of the program waits already, an arrival would wake both threads, one of them needlessly. So the progress thread leaves a QP to
//   pollers   threads that busy-poll the QP's CQ
//   spinners  threads that do so with other CQs, where the process has few CPUs (AW_SPIN_CPUS_MAX): the progress thread
//             would have to share one with them. On more CPUs an empty poll pays one relaxed load for this
//   waiters   threads that sleep on the channel of its CQs, while arrivals are brisk; the socket is in their epoll set
//   watchers  threads that poll the fd of that channel and take its events without a sleep, while arrivals are brisk and raise
//             events; the socket is in the epoll set that this fd is
// and looks each tick (net/qp/times.h) whether these threads still come:
//
//                        empty polls         +---------+ silent for four ticks; a CQ is armed
//                     +--------------------->| POLLER  |------------------------------------+
//                     |                      +---------+                                    |
//   NONE --attach--> PROGRESS  spins         +---------+ likewise; nothing moves for it     |
//    ^                ^ |  +---------------->| SPINNER |------------------------------------+
//    |                | |                    +---------+                                    |
//    |                | |    brisk arrivals  +---------+ none woke for ten ticks (four, if  |
//    |                | +------------------->| WAITER  | none sleeps); another CQ is armed--+
//    |                | |    such, each      +---------+ none came for ten ticks; bytes     |
//    |                | +------------------->| WATCHER | raise no event; likewise-----------+
//    |                |     with an event    +---------+                                    |
//    |                +---------------------------------------------------------------------+
//    +--- from each: the QP gives its socket up; in the child of a fork the stream is the parent's
//
// The more QPs a channel's threads serve, the longer they may be silent. In each silent tick the progress thread serves the QP, or
// those of its channel that have news, and leaves it where it is, unless a thread sleeps on its channel; it
// does so each fourth tick where pollers never find their CQ empty, and where watchers come to other channels meanwhile.
//
// Some programs take it for fatal if the fd is readable and there is no event. So only a QP whose arrivals have all raised one goes to
// watchers, and the first arrival that does not takes it back (net/qp/channel_wait.h says what the program gets there).
#ifndef NET_SERVE_H
#define NET_SERVE_H

#include "net/cq/activity.h"
#include "net/qp/times.h"

#include <stdbool.h>

/* QPs of other CQs are served only by a process that may use no more CPUs, and no more than so many of them. */
#define AW_SPIN_CPUS_MAX 2
#define AW_SPIN_QPS_MAX 4

enum aw_server {
	AW_SERVER_NONE, /* there is no stream, or it is another process's */
	AW_SERVER_PROGRESS,
	AW_SERVER_POLLER,
	AW_SERVER_SPINNER,
	AW_SERVER_WAITER,
	AW_SERVER_WATCHER,
	AW_SERVERS
};

/* True for those whose threads find the QP by a channel. */
static inline bool aw_serve_is_of_channel(enum aw_server server)
{
	return server == AW_SERVER_WAITER || server == AW_SERVER_WATCHER;
}

enum aw_serve_cause {
	AW_SERVE_ARRIVAL, /* the progress thread found the QP's socket ready */
	AW_SERVE_TICK, /* its look at a QP that other threads serve */
	AW_SERVE_ARM, /* a CQ of such a QP was armed */
};

/* A QP's arrivals, as far as they raise events. Zero at first. */
struct aw_eventful {
	uint32_t count; /* that did, without one in between that did not */
	uint32_t doubled; /* how often so many were not enough */
};

struct aw_serve_seen {
	enum aw_server server; /* now */
	bool unreachable; /* an epoll set did not take the socket: other threads may not see it */
	bool stuck; /* the progress thread cannot listen to the socket: the kernel has no memory */
	/* a CQ is armed, and the threads of server do not wait for its event; at an arrival: any CQ is armed */
	bool armed;
	bool ack_waits,
		ack_late; /* an acknowledgement waits for a post (net/qp/credit.h); for too long */

	/* at an arrival, since the last one: turns of the CQs' pollers and of spinners */
	uint32_t polls, spins;
	bool spinner_free; /* spinners take one more QP */
	/* at an arrival: of the channel that all armed CQs have; each 0 where there is none */
	bool asleep; /* a thread sleeps there; in a tick: of the channel whose waiters serve the QP */
	uint64_t woke_ns,
		arrival_ns; /* when one woke last; when bytes came last while a thread was expected */
	uint64_t took_ns; /* when a thread last took an event without a sleep */
	struct aw_eventful eventful;

	bool loops; /* in a tick: since the last one a watcher has come to some channel */

	/* in a tick: QPs that the channel's threads serve, which come back all at once; 0: there is no channel */
	uint32_t moves;

	/* in a tick: ticks since any thread of server did anything, or served; turns since bytes moved */
	uint32_t idle_ticks, unserved_ticks;
	uint32_t vain_turns; /* of spinners */
};

struct aw_serve_plan {
	enum aw_server next;
	bool serve; /* the calling thread serves the QP now, and then next does */
	bool look_again; /* the next tick looks at the QP, whatever its threads do */
};

/* A QP that cannot go to plan.next stays: the caller asks again with stuck, or at the next arrival. */
struct aw_serve_plan aw_serve_plan(enum aw_serve_cause cause, const struct aw_serve_seen *seen,
				   uint64_t now_ns);

/* True when a thread sleeps on the channel, or woke so lately that it is expected back. */
bool aw_serve_expects_waiter(const struct aw_serve_seen *seen, uint64_t now_ns);

/* True when a thread that polls the fd took an event so lately that it is expected back, and the QP raises events. */
bool aw_serve_expects_watcher(const struct aw_serve_seen *seen, uint64_t now_ns);

/*
 * count: bytes have arrived; raised: they raised an event. end: they woke a watcher and raised none. is_enough: the QP may go to
 * watchers.
 */
void aw_eventful_count(struct aw_eventful *e, bool raised);
void aw_eventful_end(struct aw_eventful *e);
bool aw_eventful_is_enough(const struct aw_eventful *e);

/* Counts a tick. True when these threads do nothing, or have served no QP for some ticks. */
bool aw_serve_count_tick(struct aw_activity *activity);

/* Then: how many QPs of theirs the tick may have to move or serve. loops: as in struct aw_serve_seen. */
uint32_t aw_serve_needs_look(const struct aw_activity *activity, bool loops);

/* They have QPs from now on; their past does not count. */
void aw_serve_begin_ticks(struct aw_activity *activity);

/* The one place where a QP's server changes; asserts that the diagram above has the arrow. */
void aw_serve_go(enum aw_server *server, enum aw_server next);
bool aw_serve_has_arrow(enum aw_server from, enum aw_server to);

#endif
