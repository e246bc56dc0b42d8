// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Lending: while a thread polls a CQ in vain and so serves its QPs itself, the progress thread
// stops listening to them, else every arrival would wake both. A millisecond after the polling
// stopped it takes them back (some more when thousands are lent). Lock order: QP lock, then lend's own.
#ifndef NET_LEND_H
#define NET_LEND_H

#include "net/uqp.h"

/* Is some thread polling hard enough for qp to be left to it? Call at an event; QP lock held. */
bool aw_lend_wanted(struct aw_uqp *qp);

/* Puts qp on, or takes it off, the list. QP lock held. */
void aw_lend_begin(struct aw_uqp *qp);
void aw_lend_end(struct aw_uqp *qp);

/* cq was armed: takes its QPs back, now or, where one is busy, within a tick. No lock held. */
void aw_lend_recall(const struct aw_cq *cq);

/* Around a fork; the child has lent nothing. */
void aw_lend_fork_prepare(void);
void aw_lend_fork_parent(void);
void aw_lend_fork_child(void);

#endif
