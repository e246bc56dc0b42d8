// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A completion queue: a bounded ring of CQEs and its arming. The CQ also holds the set of the QPs
// that its pollers serve, which net/qp/cq_poll.c keeps: the CQ itself knows no QP. `lock` guards
// the ring and arming; it is taken after every QP lock. `qps_lock` guards the set of QPs; it is
// held while they are served, so it is taken before any QP lock.
#ifndef NET_CQ_H
#define NET_CQ_H

#include "base/thread_safety.h"
#include "core/types.h"
#include "net/cq/channel.h"
#include "net/mem/mem.h"
#include "net/stat/stat.h"
#include "ring/lock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#define AW_CQE_MAX (4u << 20)

struct aw_cq_feed;
struct aw_moderation;
struct aw_uqp;

/* A QP as its CQs know it, embedded in the QP. */
struct aw_cq_user {
	_Atomic uint32_t unpolled; /* send CQEs in the CQ: they hold their SQ slots */
	/* its index in send_cq's and recv_cq's qps; guarded by their qps_lock */
	uint32_t slot[2];
};

struct aw_cq_entry {
	struct aw_cqe cqe;
	struct aw_cq_user *user; /* the entry goes when this QP is destroyed */
	uint32_t qpn;
	enum aw_queue queue;
	uint64_t stamp_ns; /* when the CQ wrote it, by stamp_clock; only in a stamped CQ */
};

/* The origin of a CQE. */
struct aw_cq_from {
	struct aw_cq_user *user;
	uint32_t qpn;
	enum aw_queue queue;
};

struct aw_cq {
	/* fixed after init */
	struct aw_channel *channel; /* or NULL */
	struct aw_source event;
	struct aw_channel *async; /* where an overflow is raised, or NULL */
	struct aw_source async_error;
	const struct aw_mem_source *memory; /* or NULL */
	uint32_t number; /* of this process's CQs, for statistics */
	union aw_stat_row *stat; /* its statistics, or NULL; written with lock */
	/* set by the owner before a QP uses the CQ */
	bool stamped; /* each CQE gets the time at which it is written; others cost no clock */
	clockid_t stamp_clock;
	bool overwrites; /* a full CQ loses its oldest CQE, and no event is raised */

	/* guards the ring and the end of an arming, down to overflowed; atomics among these are read without it as well */
	struct aw_latch lock;
	struct aw_cq_entry *ring;
	struct aw_mem mem; /* the ring's */
	uint32_t capacity;
	uint32_t head, tail;
	_Atomic uint32_t ready; /* tail - head, for a look without the lock */
	uint64_t cqes; /* that were ever added */
	_Atomic int armed; /* enum aw_arm */
	struct aw_moderation *moderation; /* net/cq/moderation.h; NULL: never had any */
	_Atomic bool overflowed;

	/* cq_poll.c */
	struct aw_latch qps_lock;
	struct aw_uqp **qps;
	uint32_t qps_count, qps_room;
	uint32_t qps_next; /* index of the QP whose memory was looked at last */
	uint64_t direct; /* CQEs that went to takers; guarded by qps_lock */
	_Atomic int epfd; /* over the fds of qps once they are many; -1 before */
	struct aw_cq_sock *socks; /* of UD QPs and their groups (cq_sock.c); guarded by qps_lock */
	_Atomic uint32_t socks_count; /* also read without the lock */
	uint32_t socks_room, socks_next;
	struct aw_cq_feed *feeds; /* net/cq/feed.h; guarded by qps_lock */
	_Atomic uint32_t feeds_count; /* also read without the lock */
	uint32_t feeds_room;
	_Atomic uint32_t arms; /* of a feed: how often a CQ that it feeds was armed */
	uint32_t generation; /* of the CQ's process, whose child serves none of the sockets */

	struct aw_activity pollers; /* of the threads that poll the CQ */
	/* QPs with a stream through memory (net/qp/carrier.h); twice a QP that uses the CQ for both queues */
	_Atomic uint32_t over_memory;
	_Atomic uint32_t vain; /* polls since one last found something */
	/* qp/deferral.c, qp/flush.c */
	_Atomic uint32_t polls;
	_Atomic uint32_t posts_waiting; /* QPs whose posts wait for the next poll */
	_Atomic uint32_t acks_waiting; /* QPs whose acknowledgement waits for the next post */
	_Atomic bool burst; /* the last posts came in a burst: the next poll sets polled_ns */
	_Atomic uint64_t polled_ns; /* the time of that poll */

	/* the channel's turns at the last look, and polls since (sleeps_soon) */
	_Atomic uint32_t wakes_seen, polls_awake;
	_Atomic uint32_t
		qps_away; /* QPs that other threads serve than the progress thread and the waiters of channel */
};

enum aw_arm {
	AW_ARM_NONE,
	AW_ARM_SOLICITED,
	AW_ARM_NEXT,
};

/*
 * capacity: CQEs that fit, 1 to AW_CQE_MAX; object: what channel readers get for this CQ;
 * channel and async may be NULL. 0 or ENOMEM, EINVAL.
 */
int aw_cq_init(struct aw_cq *cq, uint32_t capacity, struct aw_channel *channel, void *object);
/* Called before the CQ is used: takes its memory from source from now on. 0 or ENOMEM. */
int aw_cq_keep_in(struct aw_cq *cq, const struct aw_mem_source *source);
/* No QP may use the CQ any more. Its unread channel events are dropped. */
void aw_cq_fini(struct aw_cq *cq);

/* In the child of a fork, which has none of the threads that may have held the locks of the CQ. */
void aw_cq_renew_locks(struct aw_cq *cq);

/* 0, EINVAL when more CQEs are waiting than would fit, ENOMEM. */
int aw_cq_resize(struct aw_cq *cq, uint32_t capacity) AW_EXCLUDES(cq->lock);

/* Behind the next call, where there are some. */
int aw_cq_take_ready(struct aw_cq *cq, struct aw_cq_entry *out, int max) AW_EXCLUDES(cq->lock);

/* Takes up to max completions, oldest first. Returns how many. */
static inline int aw_cq_take(struct aw_cq *cq, struct aw_cq_entry *out, int max)
	AW_EXCLUDES(cq->lock)
{
	if (atomic_load_explicit(&cq->ready, memory_order_acquire) == 0)
		return 0;
	return aw_cq_take_ready(cq, out, max);
}

/* The next CQE raises an event on the channel once. NEXT is stronger than SOLICITED. */
void aw_cq_set_arm(struct aw_cq *cq, enum aw_arm arm);

/*
 * Raises the event of a CQ that is armed, though no CQE came, as where the CQE of an event was polled before the event: the
 * CQ is not armed any more. False: it was not armed, or has no channel.
 */
bool aw_cq_wake(struct aw_cq *cq) AW_EXCLUDES(cq->lock);

/* For QPs. push: adds a CQE; an overflow raises an event. forget: the user's CQEs go. */
void aw_cq_push(struct aw_cq *cq, const struct aw_cqe *cqe, const struct aw_cq_from *from)
	AW_EXCLUDES(cq->lock);
void aw_cq_forget(struct aw_cq *cq, const struct aw_cq_user *user) AW_EXCLUDES(cq->lock);

/*
 * A poll that has found the ring empty, and serves QPs: what its thread pushes while the ring is still empty and the CQ is not armed
 * goes to the poll, which would take it next anyway. So no lock is taken to write it nor to read it. end: returns how many out has
 * got; a thread has one taker at a time.
 */
struct aw_cq_taker {
	struct aw_cq_entry *out;
	int max;
	/* from begin on */
	const struct aw_cq *cq;
	int taken;
	bool received; /* one that is no send's */
};
void aw_cq_taker_begin(struct aw_cq *cq, struct aw_cq_taker *taker) AW_REQUIRES(cq->qps_lock);
int aw_cq_taker_end(struct aw_cq *cq, struct aw_cq_taker *taker) AW_REQUIRES(cq->qps_lock);

/* Counts what the calling thread has added to all CQs. Both numbers wrap. */
struct aw_cq_pushes {
	uint32_t cqes;
	uint32_t events; /* that these raised */
};
struct aw_cq_pushes aw_cq_pushes_of_thread(void);

/*
 * For net/ud/ud.c, in cq_sock.c: until this socket has left as often as it has joined, pollers call
 * serve for it, and threads that have armed the CQ call await. join: 0 or ENOMEM.
 */
struct aw_udsock;
struct aw_cq_sock_ops {
	void (*serve)(struct aw_udsock *sock);
	void (*await)(struct aw_udsock *sock);
};
int aw_cq_join_sock(struct aw_cq *cq, struct aw_udsock *sock, const struct aw_cq_sock_ops *ops)
	AW_EXCLUDES(cq->qps_lock);
void aw_cq_leave_sock(struct aw_cq *cq, struct aw_udsock *sock) AW_EXCLUDES(cq->qps_lock);
void aw_cq_serve_socks(struct aw_cq *cq) AW_REQUIRES(cq->qps_lock);
void aw_cq_await_socks(struct aw_cq *cq) AW_EXCLUDES(cq->qps_lock);

#endif
