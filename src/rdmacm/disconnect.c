// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// rdma_disconnect and rdma_notify.
#include "net/base/persona.h"
#include "rdmacm/fail.h"
#include "rdmacm/stream.h"
#include "ring/lock.h"

int rdma_disconnect(struct rdma_cm_id *id)
{
	if (!id)
		return aw_cm_fail(EINVAL);
	struct aw_cm_id *cm = aw_cm_id_of(id);

	if (cm->ud)
		/* there is no connection; Linux's rdma_cm returns EINVAL too */
		return aw_cm_fail(EINVAL);
	aw_lock(&cm->lock);
	enum aw_cm_state state = cm->state;

	cm->disconnecting |= state == AW_CM_CONNECTED || state == AW_CM_REPLIED;
	aw_unlock(&cm->lock);
	/* When the peer was first, a synchronous id's event waits, or the program has seen it already. */
	if (state == AW_CM_DISCONNECTED)
		return cm->sync && aw_cm_channel_holds(cm->id.channel, RDMA_CM_EVENT_DISCONNECTED)
			       ? aw_cm_id_complete(cm)
			       : 0;
	if (state != AW_CM_CONNECTED && state != AW_CM_REPLIED)
		return aw_cm_fail(EINVAL);

	/* On InfiniBand rdma_disconnect moves the QP to the error state before the peer is asked anything. */
	struct aw_uqp *uqp = aw_cm_stream_hold(cm);

	if (uqp) {
		(aw_persona_is_roce() ? aw_uqp_disconnect : aw_uqp_close)(uqp);
		aw_uqp_put(uqp);
	} else {
		/* The QP is gone, and took the stream with it. */
		aw_lock(&cm->lock);
		cm->uqp_events |= AW_UQP_CLOSED | AW_UQP_DELIVERED;
		aw_cm_stream_settle(cm);
		aw_unlock(&cm->lock);
	}
	return aw_cm_id_complete(cm);
}

/* The peer's first FPDU is handled by the QP itself; Linux does nothing here for iWARP either. */
int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	(void)event;
	if (!id || aw_cm_id_state(aw_cm_id_of(id)) < AW_CM_CONNECTING)
		return aw_cm_fail(EINVAL);
	return 0;
}
