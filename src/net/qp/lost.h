// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finds peers that vanished without a FIN or reset. TCP keep-alive finds those to which nothing is
// under way; this code finds those that acknowledge nothing of what is under way. A peer whose TCP
// answers is alive, though its program may read nothing: TCP_USER_TIMEOUT, which also ends a
// connection whose window stays closed, would be wrong. A process that has nothing under way has no
// tick.
#ifndef NET_LOST_H
#define NET_LOST_H

#include "net/qp/uqp.h"

/* Called with the QP lock held when the QP's socket has taken bytes. */
void aw_lost_sent(void);

#endif
