// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Busy-poll ownership: while a thread polls a CQ in vain and so serves its QPs itself, the progress
// thread stops listening to them, because otherwise every arrival would wake both. In the same way
// the QPs of a channel's CQs are lent to the channel while a thread sleeps on it, and that thread
// serves them. A millisecond after the polling or sleeping has stopped the progress thread serves
// the QPs, and some milliseconds later it takes them back (more when thousands are lent). While
// pollers never find their CQ empty, it serves the QPs every four milliseconds. Lock order: QP lock,
// then lend's own.
#ifndef NET_LEND_H
#define NET_LEND_H

#include "net/qp/uqp.h"

/* Called when a stream begins: earlier polls do not count for it. The caller holds the QP lock. */
void aw_lend_attach(struct aw_uqp *qp);

/*
 * True when a thread polls so often that qp can be left to it. Called at an event, with the QP lock
 * held.
 */
bool aw_lend_wanted(struct aw_uqp *qp);

/*
 * The channel whose waiter is to serve qp from now on, or NULL. Called at an event, before qp is
 * served, with the QP lock held.
 */
struct aw_channel *aw_lend_channel(struct aw_uqp *qp);

/*
 * Puts qp on the list, or takes it off. to: a channel, or NULL for pollers. The caller holds the QP
 * lock.
 */
void aw_lend_begin(struct aw_uqp *qp, struct aw_channel *to);
void aw_lend_end(struct aw_uqp *qp);

/*
 * Called when the threads that qp is, or would be, lent to cannot reach it: a tick takes it back.
 * The caller holds the QP lock.
 */
void aw_lend_stray(struct aw_uqp *qp);

/* The next tick looks at the lent QPs, whatever their threads do. */
void aw_lend_look_again(void);

/*
 * Called when cq was armed: takes back those of its QPs that no waiter of its channel serves, at
 * once or, where a QP is busy, within a tick. The caller holds no lock.
 */
void aw_lend_recall(const struct aw_cq *cq);

/* Around a fork. The child has lent nothing. */
void aw_lend_fork_prepare(void);
void aw_lend_fork_parent(void);
void aw_lend_fork_child(void);

#endif
