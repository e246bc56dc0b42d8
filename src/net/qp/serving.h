// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The threads that serve each QP, as net/qp/serve.h decides: the list of the QPs that the progress thread has left to others,
// and what is seen of those threads. Lock order: QP lock, then the list's, under which a QP's lock is only tried.
#ifndef NET_SERVING_H
#define NET_SERVING_H

#include "net/qp/uqp.h"

/* The lock of the list, for the words below: aw_serving_lock takes it. */
extern aw_mutex aw_serving_list_lock;

/* A stream begins: earlier polls do not count for it. It ends, or is another process's. */
void aw_serving_begin(struct aw_uqp *qp) AW_REQUIRES(qp->lock);
void aw_serving_end(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* At an arrival: what was seen since the last one. channel: of the waiters or watchers, or NULL. */
struct aw_serve_seen aw_serving_at_arrival(struct aw_uqp *qp, uint64_t now_ns,
					   struct aw_channel **channel) AW_REQUIRES(qp->lock);

/*
 * Leaves the QP to these threads; channel: of AW_SERVER_WAITER and AW_SERVER_WATCHER, else NULL. AW_SERVER_SPINNER only where
 * the last aw_serving_at_arrival found that spinners take one more.
 */
void aw_serving_leave_to(struct aw_uqp *qp, enum aw_server server, struct aw_channel *channel)
	AW_REQUIRES(qp->lock);

/* The threads that serve, or would serve, the QP cannot reach it. A tick takes it back. */
void aw_serving_lost_reach(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* The epoll set by which threads of the channel find the sockets of the QPs that server serves. */
int aw_serving_set(const struct aw_channel *channel, enum aw_server server);

/* How many of the QP's CQs are armed. */
uint32_t aw_serving_armed(const struct aw_uqp *qp);

/* A thread has come to a channel to look at the sockets that watchers serve. */
void aw_serving_loop_turns(void);

/* False: the QP's fds are ready for more than bytes, bells and room, as while the stream moves into memory, or at its end. */
bool aw_serving_may_watch(const struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* The next tick looks at the QPs, whatever their threads do. */
void aw_serving_look_again(void);

/*
 * For net/qp/uqp_progress.c. count_ticks: true when some QP needs a look. to_look_at: the QP that was looked at longest
 * ago, or NULL. first: of a walk by serving.entry. in_tick, at_arm: what is seen of the QP. take_back: the progress
 * thread listens to the QP's socket again; only polls from here on count for it.
 */
void aw_serving_lock(void) AW_ACQUIRE(aw_serving_list_lock);
void aw_serving_unlock(void) AW_RELEASE(aw_serving_list_lock);
uint32_t aw_serving_count(void) AW_REQUIRES(aw_serving_list_lock);
bool aw_serving_count_ticks(void) AW_REQUIRES(aw_serving_list_lock);
struct aw_uqp *aw_serving_to_look_at(void) AW_REQUIRES(aw_serving_list_lock);
struct aw_uqp *aw_serving_first(void) AW_REQUIRES(aw_serving_list_lock);
struct aw_serve_seen aw_serving_in_tick(const struct aw_uqp *qp)
	AW_REQUIRES(aw_serving_list_lock, qp->lock);
struct aw_serve_seen aw_serving_at_arm(const struct aw_uqp *qp, const struct aw_cq *cq)
	AW_REQUIRES(aw_serving_list_lock, qp->lock);
void aw_serving_take_back(struct aw_uqp *qp) AW_REQUIRES(aw_serving_list_lock, qp->lock);

/*
 * For net/qp/cq_poll.c. spin: counts a turn of a thread that spins, unless the process has more CPUs; true when spinners have
 * QPs. spinner_qp: the handle of the one in a place below AW_SPIN_QPS_MAX, or AW_TABLE_NONE.
 */
bool aw_serving_spin(void);
struct aw_activity *aw_serving_spinners(void);
uint32_t aw_serving_spinner_qp(int place);

/* Around a fork. In the child no thread serves the QPs. */
void aw_serving_fork_prepare(void) AW_ACQUIRE(aw_serving_list_lock);
void aw_serving_fork_parent(void) AW_RELEASE(aw_serving_list_lock);
void aw_serving_fork_child(void) AW_RELEASE(aw_serving_list_lock);

#endif
