// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// TIMEWAIT_EXIT comes when the QP's stream is over, but AW_TIMEWAIT_MS after DISCONNECTED at the
// soonest. TCP itself needs no such wait. But over InfiniBand the wait lasts seconds, and programs
// that are done with an id by then (rping, which prints every event that it does not know) never
// see the event there, nor here.
#include "rdmacm/timewait.h"

#include "base/log.h"
#include "net/base/bounds.h"
#include "rdmacm/event.h"
#include "rdmacm/stream.h"
#include "rdmacm/timer.h"
#include "ring/lock.h"

static void on_deadline(struct aw_cm_id *cm)
{
	bool over = aw_cm_stream_is_over(cm);

	aw_lock(&cm->lock);
	if (cm->state == AW_CM_DISCONNECTED && over)
		aw_cm_event_tell(cm, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	else if (cm->state == AW_CM_DISCONNECTED)
		aw_cm_timewait_start(cm); /* our FIN or the peer's is still to come; AW_CLOSE_MS */
	aw_unlock(&cm->lock);
}

void aw_cm_timewait_start(struct aw_cm_id *cm)
{
	/* In the child of a fork the connection and its events are the parent's. */
	if (aw_cm_id_inherited(cm))
		return;
	if (!aw_cm_timer_start(cm, aw_bounds.timewait_ms, on_deadline))
		aw_log(AW_LOG_ERROR, "%s lost: out of memory",
		       rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT));
}
