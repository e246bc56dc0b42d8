// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Peers that are gone without a word. TCP keep-alive finds those that owe nothing; this, those that
// acknowledge nothing of what is under way. A peer whose TCP answers lives, though its program takes no octet:
// so TCP_USER_TIMEOUT, which ends a window that stays closed, will not do. A process that has nothing under way
// has no tick.
#ifndef NET_LOST_H
#define NET_LOST_H

#include "net/uqp.h"

/* QP lock held: its socket has taken octets. */
void aw_lost_sent(void);

#endif
