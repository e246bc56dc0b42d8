// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Sends that wait for the program's next call, where net/qp/credit.h lets them: posts of a burst, and the
// acknowledgement of a message. net/qp/flush.h sends what waits. Lock order: QP lock, then the list's own.
#ifndef NET_DEFERRAL_H
#define NET_DEFERRAL_H

#include "net/qp/uqp.h"

/* Posts were committed. True when they wait. */
bool aw_deferral_post(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* In its place on a device that varies (net/qp/varied.h): they wait for hold_ns, unless they are flushed before; 0: not at all. */
bool aw_deferral_hold(struct aw_uqp *qp, uint64_t hold_ns) AW_REQUIRES(qp->lock);

/* The posts of this call were transmitted. */
void aw_deferral_sent(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* A thread that polls has served the QP. True when the acknowledgement that is due now waits. */
bool aw_deferral_ack(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* A poll of the program is empty, or another thread serves the QP: a post would have come before. */
void aw_deferral_missed(struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* The QP is about to transmit all that it has, or loses its socket: nothing waits any more. */
void aw_deferral_end(struct aw_uqp *qp) AW_REQUIRES(qp->lock);
/* Its acknowledgement does not wait any more. Also called in the child of a fork, without the QP lock. */
void aw_deferral_end_ack(struct aw_uqp *qp);

/* An acknowledgement waits for too long. */
bool aw_deferral_ack_is_late(const struct aw_uqp *qp) AW_REQUIRES(qp->lock);

/* True when an acknowledgement of any QP waits. */
bool aw_deferral_any_ack(void);

/*
 * For net/qp/flush.c. find: the handle of a QP of cq (NULL: of any) whose posts wait since before that time, the one
 * whose posts wait longest, or AW_TABLE_NONE. try_find: of any QP; false when the list's lock is taken. looked: the
 * progress thread has looked at the list; true when it has to look again.
 */
uint32_t aw_deferral_find(const struct aw_cq *cq, uint64_t before_ns);
bool aw_deferral_try_find(uint32_t *handle);
bool aw_deferral_looked(void);

/* How many QPs have posts that wait: a bound for who flushes them while others post. */
uint32_t aw_deferral_count(void);

/* Around a fork. The child has nothing to send, because the stream is the parent's. */
void aw_deferral_fork_prepare(void);
void aw_deferral_fork_parent(void);
void aw_deferral_fork_child(void);

#endif
