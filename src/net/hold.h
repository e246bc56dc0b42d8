// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Holding a post until the poll that is about to follow, so that one system call sends many. A burst is
// posts that come within 2 us of each other with no poll in between; its first one is never held. A
// burst with a poll right behind it, within 2 us as well, earns its QP a credit, another one costs it a
// credit; one whose posts the progress thread had to send costs it 64, and with less nothing is held.
// Lock order: QP lock, then hold's own.
#ifndef NET_HOLD_H
#define NET_HOLD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define AW_HOLD_POSTS_MAX 64 /* so many leave at once */
#define AW_HOLD_OCTETS_MAX 8192
#define AW_HOLD_GAP_NS 2000 /* longer is not "right behind" */
#define AW_HOLD_NS 20000 /* so long at the most */
#define AW_HOLD_PRICE 64 /* of posts that the progress thread had to send, in credits */
#define AW_HOLD_CREDITS_MAX (4 * AW_HOLD_PRICE)

struct aw_cq;
struct aw_uqp;

/* In the QP, guarded by its lock. */
struct aw_hold {
	uint32_t credits;
	uint32_t burst; /* calls that posted */
	uint32_t polls; /* of its CQs, at the last of them */
	uint64_t posted_ns; /* and when that ended */
	uint64_t octets; /* posted and not transmitted */
	bool listed; /* posts are held */
	uint64_t since_ns; /* from then on */
	TAILQ_ENTRY(aw_uqp) entry; /* guarded by hold.c's lock */
};

/* Posts were committed: true when they are held, false when they are to be transmitted now. */
bool aw_hold_posted(struct aw_uqp *qp);

/* They have been transmitted. */
void aw_hold_stamp(struct aw_uqp *qp);

/* For the progress thread: are they held for too long? If so, what it costs. */
bool aw_hold_is_late(const struct aw_uqp *qp);
void aw_hold_charge(struct aw_uqp *qp);

/* qp is about to transmit all that it has, or loses its socket: nothing is held any more. */
void aw_hold_end(struct aw_uqp *qp);

/* For net/cq.c, no lock held: cq is polled, or armed. What its QPs hold leaves. */
void aw_hold_polled(struct aw_cq *cq);
void aw_hold_armed(struct aw_cq *cq);

/* What is held anywhere leaves: this thread is about to sleep, or memory to go. No lock held. */
void aw_hold_release(void);

/* Around a fork; the child holds nothing: the stream is the parent's, unless the child carries on. */
void aw_hold_fork_prepare(void);
void aw_hold_fork_parent(void);
void aw_hold_fork_child(bool carries);

#endif
