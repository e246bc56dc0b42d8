// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The progress thread's part in serving QPs: it begins each stream, serves or gives away a QP whose socket is ready, and
// takes back, in a tick each millisecond, those whose threads have stopped (net/qp/serve.h).
#ifndef NET_UQP_PROGRESS_H
#define NET_UQP_PROGRESS_H

#include "net/qp/serving.h"

/*
 * Called when cq was armed: takes back those of its QPs that no waiter of its channel serves, at once or, where a QP is
 * busy, within a tick.
 */
void aw_uqp_take_back(const struct aw_cq *cq) AW_EXCLUDES(aw_serving_list_lock);

/* The progress thread's entry points. The QP may be gone. */
void aw_uqp_on_event(uint32_t handle);
void aw_uqp_on_deadline(uint32_t handle);

#endif
