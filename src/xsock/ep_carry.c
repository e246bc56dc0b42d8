// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An endpoint that goes on in the child of a fork. Its memory is a copy there, at the same address; whoever
// waited or slept is the parent's.
#include "xsock/ep_impl.h"

#include <unistd.h>

int aw_xs_ep_ids(struct aw_xs_ep *ep, struct rdma_cm_id *ids[AW_XS_EP_IDS])
{
	int count = 0;

	if (ep->id)
		ids[count++] = ep->id;
	if (ep->listen_id)
		ids[count++] = ep->listen_id;
	return count;
}

void aw_xs_ep_taken(struct aw_xs_ep *ep)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&ep->changed, &attr);
	pthread_condattr_destroy(&attr);
	ep->pid = getpid();
	ep->options.prompt = false; /* a carrier outlives who writes */
	aw_xs_ep_forget_will(ep);
	ep->listed = ep->is_behind = false;
	aw_xs_service_join(ep);
	ep->waiters = 0;
	ep->sleeping = ep->poller = ep->kicked = false;
	ep->send_cq.armed = ep->recv_cq.armed = false;
}

void aw_xs_ep_forget(struct aw_xs_ep *ep, int (*forget)(struct rdma_cm_id *id))
{
	aw_xs_service_leave(ep);
	if (ep->id)
		forget(ep->id);
	if (ep->listen_id)
		forget(ep->listen_id);
	ep->id = ep->listen_id = NULL;
	aw_xs_ep_free(ep);
}
