// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Post coalescing: the library holds a post back until the poll that is about to follow, so that
// one system call sends many. A burst is posts that come within 2 us of each other with no poll in
// between; its first one is never held. A burst that a poll follows within 2 us earns its QP a
// credit for each post but the first, since each saves a system call when it is held; any other burst costs one.
// A burst whose posts the progress thread had to send costs
// 64 credits, and a QP with fewer than 64 holds nothing. Lock order: QP lock, then hold's own.
#ifndef NET_HOLD_H
#define NET_HOLD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define AW_HOLD_POSTS_MAX 64 /* at most so many are held */
#define AW_HOLD_BYTES_MAX 8192
#define AW_HOLD_GAP_NS 2000 /* a longer gap ends the burst */
#define AW_HOLD_NS 20000 /* posts are held for so long at the most */
#define AW_HOLD_PRICE 64 /* in credits, when the progress thread had to send the posts */
#define AW_HOLD_CREDITS_MAX (4 * AW_HOLD_PRICE)

struct aw_cq;
struct aw_uqp;

/* In the QP, guarded by its lock. */
struct aw_hold {
	uint32_t credits;
	uint32_t burst; /* calls that posted */
	uint32_t polls; /* polls of its CQs, at the last of these calls */
	uint64_t posted_ns; /* when the last of these calls ended */
	uint64_t bytes; /* posted and not transmitted */
	bool listed; /* posts are held */
	uint64_t since_ns; /* when the oldest of them was posted */
	TAILQ_ENTRY(aw_uqp) entry; /* guarded by hold.c's lock */
};

/*
 * Called when posts were committed. True when they are held, false when they are to be transmitted
 * now.
 */
bool aw_hold_posted(struct aw_uqp *qp);

/* Called when the held posts have been transmitted. */
void aw_hold_stamp(struct aw_uqp *qp);

/*
 * For the progress thread: true when qp's posts are held for too long; then the caller charges qp
 * for it.
 */
bool aw_hold_is_late(const struct aw_uqp *qp);
void aw_hold_charge(struct aw_uqp *qp);

/*
 * Called when qp is about to transmit all that it has, or loses its socket: it holds nothing any
 * more.
 */
void aw_hold_end(struct aw_uqp *qp);

/*
 * For net/qp/cq_poll.c, with no lock held: cq is polled, or armed, so the posts that its QPs hold
 * are sent.
 */
void aw_hold_polled(struct aw_cq *cq);
void aw_hold_armed(struct aw_cq *cq);

/*
 * Sends all held posts of the process: this thread is about to sleep, or memory is about to go. The
 * caller holds no lock.
 */
void aw_hold_release(void);

/* Around a fork. The child holds nothing, because the stream is the parent's. */
void aw_hold_fork_prepare(void);
void aw_hold_fork_parent(void);
void aw_hold_fork_child(void);

#endif
