// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Lending: while a thread polls a CQ in vain and so serves its QPs itself, the progress thread
// stops listening to them, else every arrival would wake both. A millisecond after the polling
// stopped it takes them back. Lock order: QP lock, then lend's own.
#ifndef NET_LEND_H
#define NET_LEND_H

#include "net/uqp.h"

/* Is some thread polling hard enough for qp to be left to it? Call at an event; QP lock held. */
bool aw_lend_wanted(struct aw_uqp *qp);

/* Puts qp on, or takes it off, the list. QP lock held. */
void aw_lend_begin(struct aw_uqp *qp);
void aw_lend_end(struct aw_uqp *qp);

/* Around a fork, so that parent and child go on with a whole list. */
void aw_lend_fork_prepare(void);
void aw_lend_fork_done(void);

#endif
