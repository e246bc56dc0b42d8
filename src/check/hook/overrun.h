// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A CQ that the plan of faults has overrun: from then on it gives no completion, its QPs are in the state ERR, and there is an
// event IBV_EVENT_CQ_ERR.
#ifndef CHECK_HOOK_OVERRUN_H
#define CHECK_HOOK_OVERRUN_H

#include "check/model/verbs.h"

/* True where the completion that the program is about to be given is lost, since its CQ overruns at it or did so before. */
bool aw_overrun_loses(struct aw_cq_shadow *cq);

/* The poll is over: the QPs of a CQ that has overrun in it fail, which may take the CQ's lock, and the event occurs. */
void aw_overrun_settle(struct aw_cq_shadow *cq);

#endif
