// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The one deadline that an id may have. Its purpose depends on the state that started it.
#ifndef RDMACM_TIMER_H
#define RDMACM_TIMER_H

#include "rdmacm/id.h"

/*
 * Called on the progress thread, without the lock, with the id held; the state may have changed
 * meanwhile.
 */
typedef void aw_cm_timer_fn(struct aw_cm_id *cm);

/* Sets the deadline to ms from now. False: memory is out, and there is no deadline. */
bool aw_cm_timer_start(struct aw_cm_id *cm, uint32_t ms, aw_cm_timer_fn *fn) AW_REQUIRES(cm->lock);

/* Removes the deadline. */
void aw_cm_timer_stop(struct aw_cm_id *cm) AW_REQUIRES(cm->lock);

#endif
