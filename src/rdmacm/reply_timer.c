// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The deadline of a responder's peer.
#include "rdmacm/reply_timer.h"

#include "net/bounds.h"
#include "net/log.h"
#include "rdmacm/event.h"
#include "rdmacm/stream.h"

#include <errno.h>
#include <stdlib.h>

struct aw_cm_timer {
	struct aw_watch watch; /* must be first */
	void *arg; /* of the id */
};

/* Decides under the lock; true: the QP is to be aborted. */
static bool expire(struct aw_cm_id *cm, struct aw_watch *watch)
{
	pthread_mutex_lock(&cm->lock);
	bool silent = cm->state == AW_CM_REPLIED && cm->timer && &cm->timer->watch == watch;

	if (silent) {
		aw_cm_reply_timer_stop(cm);
		aw_cm_id_enter(cm, AW_CM_FAILED);
		aw_cm_event_tell(cm, RDMA_CM_EVENT_CONNECT_ERROR, -ETIMEDOUT);
		aw_log(AW_LOG_WARN, "qp 0x%x: peer silent after the reply", cm->qpn);
	}
	pthread_mutex_unlock(&cm->lock);
	return silent;
}

static void on_deadline(struct aw_watch *watch, uint32_t events)
{
	struct aw_cm_id *cm = aw_cm_id_get(((struct aw_cm_timer *)watch)->arg);

	if (!cm)
		return;
	struct aw_uqp *uqp =
		(events & AW_WATCH_TIMEOUT) && expire(cm, watch) ? aw_cm_stream_hold(cm) : NULL;

	if (uqp) {
		aw_uqp_abort(uqp);
		aw_uqp_put(uqp);
	}
	aw_cm_id_put(cm);
}

static void release(struct aw_watch *watch)
{
	free(watch);
}

void aw_cm_reply_timer_start(struct aw_cm_id *cm)
{
	struct aw_cm_timer *timer = calloc(1, sizeof(*timer));

	if (!timer)
		return;
	timer->arg = aw_cm_id_arg(cm);
	if (aw_watch_add(&timer->watch, -1, 0, on_deadline, release) != 0) {
		free(timer);
		return;
	}
	cm->timer = timer;
	aw_watch_deadline(&timer->watch, aw_bounds.startup_ms);
}

void aw_cm_reply_timer_stop(struct aw_cm_id *cm)
{
	if (cm->timer)
		aw_watch_remove(&cm->timer->watch);
	cm->timer = NULL;
}
