// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Completion channels, which notify of CQs that were armed. The fd is real: it can be polled and be
// made non-blocking.
#include "verbs/channel.h"

#include "net/base/io_now.h"
#include "net/qp/channel_wait.h"
#include "ring/lock.h"
#include "verbs/ack.h"
#include "verbs/context.h"
#include "verbs/fail.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	struct vb_channel *channel = calloc(1, sizeof(*channel));
	int err = channel ? aw_channel_init_for_qps(&channel->events) : ENOMEM;

	if (err) {
		free(channel);
		errno = err;
		return NULL;
	}
	channel->ibv.context = context;
	channel->ibv.fd = channel->events.fd;
	vb_context_get(context);
	return &channel->ibv;
}

/* EBUSY while a CQ uses the channel. */
int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	AW_UNCANCELLED int cancel = aw_cancel_disable();
	static struct vb_channel *_Atomic waited_on;
	struct ibv_context *context = channel->context;
	struct vb_channel *vb = vb_channel_of(channel);
	bool used;

	aw_lock(&context->mutex);
	used = channel->refcnt > 0;
	aw_unlock(&context->mutex);
	if (used)
		return vb_fail(EBUSY);
	aw_channel_fini(&vb->events);

	/*
	 * A thread that waits on a channel that is destroyed hangs until it is cancelled, as with an adapter,
	 * and then still uses the channel's memory, so that it stays.
	 */
	if (aw_channel_has_waiter(&vb->events)) {
		vb->next = waited_on;
		while (!atomic_compare_exchange_weak(&waited_on, &vb->next, vb))
			;
	} else {
		free(vb);
	}
	vb_context_put(context);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	void *object;
	int kind;
	int err = aw_channel_await(&vb_channel_of(channel)->events, &object, &kind);

	if (err) {
		errno = err;
		return -1;
	}
	*cq = object;
	*cq_context = (*cq)->cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	struct vb_ack ack = { &cq->mutex, &cq->cond, &cq->comp_events_completed };

	vb_ack_add(ack, nevents);
}
