// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The deadline of a responder's peer.
#include "rdmacm/reply_timer.h"

#include "base/log.h"
#include "net/base/bounds.h"
#include "rdmacm/event.h"
#include "rdmacm/stream.h"
#include "rdmacm/timer.h"
#include "ring/lock.h"

#include <errno.h>

static void on_deadline(struct aw_cm_id *cm)
{
	aw_lock(&cm->lock);
	bool silent = cm->state == AW_CM_REPLIED;

	if (silent) {
		aw_cm_id_enter(cm, AW_CM_FAILED);
		aw_cm_event_tell(cm, RDMA_CM_EVENT_CONNECT_ERROR, -ETIMEDOUT);
		aw_log(AW_LOG_WARN,
		       "qp 0x%x: connection failed: the peer sent no message in time after the mpa reply",
		       cm->qpn);
	}
	aw_unlock(&cm->lock);
	struct aw_uqp *uqp = silent ? aw_cm_stream_hold(cm) : NULL;

	if (!uqp)
		return;
	aw_uqp_abort(uqp);
	aw_uqp_put(uqp);
}

void aw_cm_reply_timer_start(struct aw_cm_id *cm)
{
	aw_cm_timer_start(cm, aw_bounds.startup_ms, on_deadline);
}
