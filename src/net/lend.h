// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Lending: while a thread polls a CQ in vain and so serves its QPs itself, the progress thread
// stops listening to them, else every arrival would wake both. Likewise while a thread sleeps on a
// completion channel: the QPs of its CQs are lent to the channel, and it serves them. A millisecond
// after the polling or sleeping stopped the progress thread serves them, and takes them back some
// milliseconds later (some more when thousands are lent). Lock order: QP lock, then lend's own.
#ifndef NET_LEND_H
#define NET_LEND_H

#include "net/uqp.h"

/* A stream begins: what was polled before says nothing of it. QP lock held. */
void aw_lend_attach(struct aw_uqp *qp);

/* Is some thread polling hard enough for qp to be left to it? Call at an event; QP lock held. */
bool aw_lend_wanted(struct aw_uqp *qp);

/* The channel whose waiter is to serve qp from now on, or NULL. Call likewise, before serving it. */
struct aw_channel *aw_lend_channel(struct aw_uqp *qp);

/* Puts qp on, or takes it off, the list; to: a channel, or NULL for pollers. QP lock held. */
void aw_lend_begin(struct aw_uqp *qp, struct aw_channel *to);
void aw_lend_end(struct aw_uqp *qp);

/* qp cannot be reached by those whom it is, or would be, lent to: a tick takes it back. QP lock held. */
void aw_lend_stray(struct aw_uqp *qp);

/*
 * cq was armed: takes back its QPs that no waiter of its channel serves, now or, where one is busy,
 * within a tick. No lock held.
 */
void aw_lend_recall(const struct aw_cq *cq);

/* Around a fork; the child has lent nothing. Where it carries on, the QPs are to be listened to again. */
void aw_lend_fork_prepare(void);
void aw_lend_fork_parent(void);
void aw_lend_fork_child(bool carries);

#endif
