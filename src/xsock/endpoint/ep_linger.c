// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Closing. An endpoint that still has bytes to send, or an end to tell, lingers: the service turns it until it is
// done. What the peer sends meanwhile is taken and dropped, since a peer that cannot send may not receive
// either. One that gets nowhere for a minute is given up, unless its maker has more patience with late peers.
#include "xsock/endpoint/ep_impl.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define STALL_NS 60000000000u /* without a single byte on its way */
#define FAREWELL_NS 3000000000u /* for the peer's end, once ours is told */

static void note_progress(struct aw_xs_ep *ep, uint64_t now)
{
	uint64_t at = ep->stream.freed + ep->stream.seq_limit + ep->stream.came + ep->phase;

	if (at != ep->stalled_at || ep->stalled_since_ns == 0) {
		ep->stalled_at = at;
		ep->stalled_since_ns = now;
	}
}

static void fail_qp(struct aw_xs_ep *ep)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (ep->id && ep->id->qp)
		ibv_modify_qp(ep->id->qp, &attr, IBV_QP_STATE);
}

/* What was taken is sent and the end told: now the connection's end, unless it is over. */
static void say_farewell(struct aw_xs_ep *ep, uint64_t now)
{
	if (ep->disconnecting || !aw_xs_ep_is_flushed(ep))
		return;
	ep->disconnecting = true;
	ep->stalled_since_ns = now;
	ep->stalled_at = UINT64_MAX;
	if (!ep->id || rdma_disconnect(ep->id) != 0)
		aw_xs_ep_over(ep, 0);
}

/* Nothing to send and nobody to tell. */
static bool is_pointless(const struct aw_xs_ep *ep)
{
	const struct aw_xs_stream *s = &ep->stream;

	return ep->phase == AW_XS_PHASE_IDLE || ep->phase == AW_XS_PHASE_OVER ||
	       (ep->phase < AW_XS_PHASE_REQUEST && s->put == 0);
}

static uint64_t stall_max(const struct aw_xs_ep *ep)
{
	if (ep->disconnecting)
		return FAREWELL_NS;
	if (ep->phase < AW_XS_PHASE_UP && ep->options.patience_ms)
		return ep->options.patience_ms * UINT64_C(1000000);
	return STALL_NS;
}

bool aw_xs_ep_linger(struct aw_xs_ep *ep)
{
	uint64_t now = aw_xs_now_ns();
	bool over;

	pthread_mutex_lock(&ep->lock);
	aw_xs_ep_cm_progress(ep);
	aw_xs_ep_progress(ep, 0);
	aw_xs_stream_discard(&ep->stream);
	aw_xs_ep_pump(ep, 0);
	if (!ep->disconnecting)
		note_progress(ep, now);
	say_farewell(ep, now);
	over = is_pointless(ep) || now - ep->stalled_since_ns > stall_max(ep);
	pthread_mutex_unlock(&ep->lock);
	return over;
}

/* The parent's connection: only our copy of the memory is ours. */
static void forget(struct aw_xs_ep *ep)
{
	munmap(ep->memory, ep->memory_len);
	free(ep);
}

static void reset(struct aw_xs_ep *ep)
{
	fail_qp(ep);
	aw_xs_ep_free(ep);
}

/* Whoever closes wants no more; what was taken before goes out first, and the end behind it. */
static void linger(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	aw_xs_ep_progress(ep, 0);
	aw_xs_stream_end(&ep->stream, AW_XS_GONE);
	aw_xs_stream_discard(&ep->stream);
	aw_xs_ep_pump(ep, 0);
	bool pointless = is_pointless(ep);

	pthread_mutex_unlock(&ep->lock);
	if (pointless)
		aw_xs_ep_free(ep);
	else
		aw_xs_service_linger(ep);
}

void aw_xs_ep_close(struct aw_xs_ep *ep, bool abort)
{
	if (ep->pid != getpid()) {
		forget(ep);
		return;
	}
	aw_xs_service_leave(ep);
	if (ep->is_left)
		return;
	if (abort)
		reset(ep);
	else
		linger(ep);
}
