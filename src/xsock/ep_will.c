// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The endpoint's will. Nothing is told to anybody: who is killed leaves what was written last.
#include "xsock/ep_impl.h"

#include <sys/mman.h>
#include <unistd.h>

typedef int keep_note_fn(struct rdma_cm_id *id, struct anywarp_cm_note *note);

static int keep_note(const struct aw_xs_ep *ep, struct anywarp_cm_note *note)
{
	keep_note_fn *keep = (keep_note_fn *)aw_xs_cm_extension("anywarp_cm_keep_note");

	return keep && ep->id ? keep(ep->id, note) : -1;
}

static enum aw_xs_will_state state_of(const struct aw_xs_ep *ep)
{
	const struct aw_xs_stream *s = &ep->stream;

	if (ep->phase < AW_XS_PHASE_UP)
		return AW_XS_WILL_EARLY;
	if (ep->phase > AW_XS_PHASE_UP || s->error || ep->resets || s->tx_end == AW_XS_GONE)
		return AW_XS_WILL_TOLD;
	return AW_XS_WILL_OPEN;
}

static void put(_Atomic(uint32_t) *at, uint32_t value)
{
	atomic_store_explicit(at, value, memory_order_relaxed);
}

static void put_count(_Atomic(uint64_t) *at, uint64_t value)
{
	atomic_store_explicit(at, value, memory_order_relaxed);
}

void aw_xs_ep_write_will(struct aw_xs_ep *ep)
{
	const struct aw_xs_stream *s = &ep->stream;
	struct aw_xs_will *will = ep->will;

	put(&will->behind, s->put != s->posted || s->urgent_due);
	put(&will->unread, aw_xs_stream_pending(s) > 0);
	put(&will->net, s->tx_net);
	put(&will->state, state_of(ep));
	put(&will->ep_state, aw_xs_ep_state_of(ep));
	put(&will->send_credits, (uint16_t)(s->seq_limit - s->seq));
	put(&will->receive_credits, s->rq_size - (uint16_t)(s->rseq - s->rseq_told));
	put_count(&will->octets_in, s->came);
	put_count(&will->octets_out, s->octets_out);
}

void aw_xs_ep_will_behind(struct aw_xs_ep *ep)
{
	put(&ep->will->behind, 1);
}

/* A library that keeps no notes lets nobody end a connection: the will stays as it is. */
void aw_xs_ep_begin_will(struct aw_xs_ep *ep)
{
	if (ep->will_on && keep_note(ep, &ep->will->note) != 0)
		aw_xs_ep_drop_will(ep);
}

void aw_xs_ep_drop_will(struct aw_xs_ep *ep)
{
	if (!ep->will)
		return;
	put(&ep->will->state, AW_XS_WILL_VOID);
	munmap(ep->will, AW_XS_WILL_OCTETS);
	close(ep->lifeline);
	ep->will = NULL;
	ep->will_on = false;
}

void aw_xs_ep_set_will(struct aw_xs_ep *ep, struct aw_xs_will *will, int lifeline)
{
	pthread_mutex_lock(&ep->lock);
	ep->will = will;
	ep->will_on = true;
	ep->lifeline = lifeline;
	aw_xs_ep_unlock(ep);
}

void aw_xs_ep_suspend_will(struct aw_xs_ep *ep, bool suspended)
{
	if (!ep->will)
		return;
	pthread_mutex_lock(&ep->lock);
	ep->will_on = !suspended;
	if (suspended)
		put(&ep->will->state, AW_XS_WILL_VOID);
	(void)keep_note(ep, suspended ? NULL : &ep->will->note);
	aw_xs_ep_unlock(ep);
}

void aw_xs_ep_forget_will(struct aw_xs_ep *ep)
{
	if (ep->will)
		munmap(ep->will, AW_XS_WILL_OCTETS);
	ep->will = NULL;
}
