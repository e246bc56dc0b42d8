// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The one deadline that an id may have. What it is for depends on the state that started it.
#ifndef RDMACM_TIMER_H
#define RDMACM_TIMER_H

#include "rdmacm/id.h"

/* On the progress thread, without the lock, the id held; the state may have changed meanwhile. */
typedef void aw_cm_timer_fn(struct aw_cm_id *cm);

/* In ms from now, once; the lock is held. False: out of memory, and there is no deadline. */
bool aw_cm_timer_start(struct aw_cm_id *cm, uint32_t ms, aw_cm_timer_fn *fn);

/* None any more; the lock is held. */
void aw_cm_timer_stop(struct aw_cm_id *cm);

#endif
