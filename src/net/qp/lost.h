// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Looks for peers that vanished without a FIN or reset (core/liveness.h). A process that has nothing under way has no
// tick.
#ifndef NET_LOST_H
#define NET_LOST_H

#include "net/qp/uqp.h"

/* Called with the QP lock held when the QP's socket has taken bytes. */
void aw_lost_sent(void);

#endif
