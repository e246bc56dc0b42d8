// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RDMA_CM_EVENT_TIMEWAIT_EXIT: the QP of a connection that ended is ready for another one.
#ifndef RDMACM_TIMEWAIT_H
#define RDMACM_TIMEWAIT_H

#include "rdmacm/id.h"

/* Called when DISCONNECTED was entered. */
void aw_cm_timewait_start(struct aw_cm_id *cm) AW_REQUIRES(cm->lock);

#endif
