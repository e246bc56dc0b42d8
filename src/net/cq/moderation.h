// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A CQ's events, fewer than its CQEs (ibv_modify_cq(3)): while the CQ is armed, its event waits until `count` CQEs
// have come that it may report, or until `period` has passed since the first of them. The CQ stays armed meanwhile, so
// that no event is lost: each wait has an end, which the progress thread keeps. Programs that move data at full rate
// wake once for many CQEs; one that waits for a single CQE wakes later by at most the period.
//
// Held CQEs, count and times are guarded by the CQ's lock.
#ifndef NET_MODERATION_H
#define NET_MODERATION_H

#include "net/cq/cq.h"

/*
 * count: CQEs an event, at most 65535; period_us: the longest that an event waits. The event is not delayed if count is 0 or 1,
 * or period_us is 0, since a wait without an end could be for ever; one that waits is then raised at once. Called with
 * a reference of the engine held. 0, or aw_watch_add's error: then nothing has changed.
 */
int aw_moderation_set(struct aw_cq *cq, uint16_t count, uint16_t period_us) AW_EXCLUDES(cq->lock);

/* For aw_cq_push. A CQE has come that the armed CQ reports: true when its event has to wait. */
bool aw_moderation_holds(struct aw_cq *cq) AW_REQUIRES(cq->lock);

/* The CQ's event is raised for another reason: none waits any more. */
void aw_moderation_drop(struct aw_cq *cq) AW_REQUIRES(cq->lock);

/* No QP uses the CQ any more: an event that waits is dropped, and none comes. Called once more it does nothing. */
void aw_moderation_end(struct aw_cq *cq) AW_EXCLUDES(cq->lock);

#endif
