// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The time that a peer may take between our Reply and its first FPDU: without a bound a silent peer
// would keep a synchronous rdma_accept for ever.
#ifndef RDMACM_REPLY_TIMER_H
#define RDMACM_REPLY_TIMER_H

#include "rdmacm/id.h"

/* Called when REPLIED was entered. When memory is out there is no bound. */
void aw_cm_reply_timer_start(struct aw_cm_id *cm) AW_REQUIRES(cm->lock);

#endif
