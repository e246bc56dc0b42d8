// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Closing. An endpoint that has bytes or the stream's end to send lingers: the service makes
// progress on it until both are sent. Bytes that the peer sends meanwhile are received and dropped,
// since a peer that cannot send may not receive either. An endpoint that gets nowhere for a minute
// (patience_ms during start-up) is given up.
#include "xsock/endpoint/ep_impl.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#define STALL_NS 60000000000u /* without any progress */
#define DISCONNECT_NS 3000000000u /* how long the peer has to end its direction after ours */

static void note_progress(struct aw_xs_ep *ep, uint64_t now)
{
	uint64_t at = ep->stream.freed + ep->stream.seq_limit + ep->stream.came + ep->phase;

	if (at != ep->stalled_at || ep->stalled_since_ns == 0) {
		ep->stalled_at = at;
		ep->stalled_since_ns = now;
	}
}

void aw_xs_ep_fail_qp(struct aw_xs_ep *ep)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (ep->id && ep->id->qp)
		ibv_modify_qp(ep->id->qp, &attr, IBV_QP_STATE);
}

void aw_xs_ep_reset(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	if (ep->phase != AW_XS_PHASE_OVER)
		aw_xs_ep_fail_qp(ep);
	pthread_mutex_unlock(&ep->lock);
}

/* Disconnects once the bytes and the stream's end are sent. */
static void disconnect_flushed(struct aw_xs_ep *ep, uint64_t now)
{
	if (ep->disconnecting || !aw_xs_ep_is_flushed(ep))
		return;
	ep->disconnecting = true;
	ep->stalled_since_ns = now;
	ep->stalled_at = UINT64_MAX;
	if (!ep->id || rdma_disconnect(ep->id) != 0)
		aw_xs_ep_end(ep, 0);
}

/* Returns whether there is nothing to send, or no peer to send it to. */
static bool has_nothing_to_send(const struct aw_xs_ep *ep)
{
	const struct aw_xs_stream *s = &ep->stream;

	return ep->phase == AW_XS_PHASE_IDLE || ep->phase == AW_XS_PHASE_OVER ||
	       (ep->phase < AW_XS_PHASE_REQUEST && s->put == 0);
}

static uint64_t stall_max(const struct aw_xs_ep *ep)
{
	if (ep->disconnecting)
		return DISCONNECT_NS;
	if (ep->phase < AW_XS_PHASE_UP && ep->options.patience_ms)
		return ep->options.patience_ms * UINT64_C(1000000);
	return STALL_NS;
}

bool aw_xs_ep_linger(struct aw_xs_ep *ep)
{
	uint64_t now = (uint64_t)aw_now_ns();

	aw_xs_ep_cm_progress(ep);
	aw_xs_ep_progress(ep);
	aw_xs_stream_discard(&ep->stream);
	aw_xs_ep_pump(ep, 0);
	if (!ep->disconnecting)
		note_progress(ep, now);
	disconnect_flushed(ep, now);
	return has_nothing_to_send(ep) || now - ep->stalled_since_ns > stall_max(ep);
}

/* Frees the copy of an endpoint in a child of fork. The connection is the parent's. */
static void free_in_child(struct aw_xs_ep *ep)
{
	munmap(ep->memory, ep->memory_len);
	free(ep);
}

/* Receives no more, and sends the bytes that were taken and then the stream's end. Returns whether there are none to send. */
static bool end_stream(struct aw_xs_ep *ep)
{
	pthread_mutex_lock(&ep->lock);
	aw_xs_ep_progress(ep);
	aw_xs_stream_end(&ep->stream, AW_XS_GONE);
	aw_xs_stream_discard(&ep->stream);
	ep->flush_awaited = true;
	aw_xs_ep_pump(ep, 0);
	bool done = has_nothing_to_send(ep);

	pthread_mutex_unlock(&ep->lock);
	return done;
}

void aw_xs_ep_close(struct aw_xs_ep *ep, bool abort)
{
	if (ep->pid != getpid()) {
		free_in_child(ep);
		return;
	}
	if (!aw_xs_service_leave(ep, false))
		return;
	if (abort)
		aw_xs_ep_fail_qp(ep);
	if (abort || end_stream(ep))
		aw_xs_ep_free(ep);
	else
		aw_xs_service_linger(ep);
}

void aw_xs_ep_hang_up(struct aw_xs_ep *ep)
{
	if (ep->pid != getpid())
		return;
	if (!aw_xs_service_leave(ep, true))
		return;
	(void)end_stream(ep);
	aw_xs_service_linger(ep);
}
