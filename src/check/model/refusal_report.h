// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A request of one end for memory of the other one that is refused, told at both ends: the end that refuses it knows why, the
// end that asked knows the call.
#ifndef CHECK_MODEL_REFUSAL_REPORT_H
#define CHECK_MODEL_REFUSAL_REPORT_H

#include "anywarp/check.h"

/* Tells what this end's device refused, at the program's post where the peer is this process as well. In any thread. */
void aw_refused_report(const struct anywarp_refusal *refusal);

/* Tells a completion whose request the peer refused. Before aw_cq_completed, with the device's own status. */
void aw_refused_completed(const struct ibv_cq *cq, const struct ibv_wc *wc);

#endif
