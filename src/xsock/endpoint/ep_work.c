// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The WRs that go through the endpoint's QP. Each aw_xs_work becomes WRs, and callers post some of their own.
// Receive completions are given to the stream as messages; their CQ is armed for threads that wait. Send
// completions free room; their CQ is polled when the send ring or the SQ runs low.
#include "xsock/endpoint/ep_impl.h"

#include <errno.h>
#include <string.h>

#define POLL_MAX 32 /* completions per poll */
#define SEND_LAZY 65536u /* bytes of the send ring whose completions need not be polled for */
#define CHAIN_MAX 16 /* works in one ibv_post_send */
/* in a send's wr_id: the completion also calls a struct aw_xs_caller_wr's callback */
#define ID_CALLER 1u

int aw_xs_ep_post_receives(struct aw_xs_ep *ep, uint32_t first, uint32_t count)
{
	struct ibv_recv_wr wr[POLL_MAX], *bad;
	struct ibv_sge sge[POLL_MAX];

	for (uint32_t done = 0; done < count;) {
		uint32_t n = 0;

		for (; n < POLL_MAX && done < count; n++, done++) {
			uint32_t slot = (first + done) % ep->recv_count;

			sge[n] = (struct ibv_sge){
				.addr = (uintptr_t)ep->memory + ep->messages_at +
					slot * AW_XS_MSG_LEN,
				.length = AW_XS_MSG_LEN,
				.lkey = ep->own_mr->lkey,
			};
			wr[n] = (struct ibv_recv_wr){
				.wr_id = slot,
				.next = wr + n + 1,
				.sg_list = sge + n,
				.num_sge = 1,
			};
		}
		wr[n - 1].next = NULL;
		if (ibv_post_recv(ep->id->qp, wr, &bad) != 0)
			return -ENOMEM;
	}
	return 0;
}

/* Calls the callback of the oldest WR of a caller. */
static void complete_caller_wr(struct aw_xs_ep *ep, int err) AW_REQUIRES(ep->lock)
{
	struct aw_xs_caller_wr *wr = &ep->caller_wr[ep->caller_first];

	ep->caller_first = (ep->caller_first + 1) % AW_XS_CALLER_WRS_MAX;
	ep->caller_wrs--;
	if (wr->done)
		wr->done(wr->arg, err);
}

void aw_xs_ep_fail_caller_wrs(struct aw_xs_ep *ep)
{
	while (ep->caller_wrs > 0)
		complete_caller_wr(ep, ECONNABORTED);
}

struct chain {
	struct ibv_send_wr wr[2 * CHAIN_MAX];
	struct ibv_sge sge[3 * CHAIN_MAX];
	uint8_t msg[CHAIN_MAX][AW_XS_MSG_LEN];
	uint8_t entry[CHAIN_MAX][AW_XS_IOMAP_LEN];
	uint32_t wrs, sges, works;
};

static void chain_begin(struct chain *c)
{
	c->wrs = c->sges = c->works = 0;
}

/* Adds a WR. It fits: a work has at most two spans and a message. */
static struct ibv_send_wr *add_wr(struct chain *c, enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr *wr = &c->wr[c->wrs];

	*wr = (struct ibv_send_wr){ .opcode = opcode, .sg_list = &c->sge[c->sges] };
	if (c->wrs > 0)
		c->wr[c->wrs - 1].next = wr;
	c->wrs++;
	return wr;
}

static void add_sge(struct chain *c, struct ibv_send_wr *wr, const uint8_t *bytes, uint32_t len,
		    uint32_t lkey)
{
	c->sge[c->sges++] = (struct ibv_sge){ (uintptr_t)bytes, len, lkey };
	wr->num_sge++;
}

static void add_work(const struct aw_xs_ep *ep, struct chain *c, const struct aw_xs_work *work)
	AW_REQUIRES(ep->lock)
{
	struct ibv_send_wr *wr = NULL;
	uint32_t len = work->entry_len;

	if (work->spans > 0 || work->entry_len > 0) {
		wr = add_wr(c, IBV_WR_RDMA_WRITE);
		wr->wr.rdma.remote_addr = work->addr;
		wr->wr.rdma.rkey = work->key;
		if (work->entry_len > 0) {
			memcpy(c->entry[c->works], work->entry, work->entry_len);
			add_sge(c, wr, c->entry[c->works], work->entry_len, 0);
		}
		for (uint32_t i = 0; i < work->spans; i++) {
			add_sge(c, wr, work->span[i].bytes, work->span[i].len, ep->own_mr->lkey);
			len += work->span[i].len;
		}
		wr->send_flags = len <= ep->inline_max ? IBV_SEND_INLINE : 0;
	}
	if (work->has_msg) {
		memcpy(c->msg[c->works], work->msg, AW_XS_MSG_LEN);
		wr = add_wr(c, IBV_WR_SEND);
		add_sge(c, wr, c->msg[c->works], AW_XS_MSG_LEN, 0);
		wr->send_flags = IBV_SEND_INLINE;
	}
	wr->send_flags |= IBV_SEND_SIGNALED;
	/* for aw_xs_stream_done(), at the completion */
	wr->wr_id = (uint64_t)work->bytes << 16 | work->wrs << 8;
	c->works++;
}

/* Gives a message to the stream. After a violation of the protocol the endpoint disconnects. */
static void on_receive(struct aw_xs_ep *ep, const struct ibv_wc *wc) AW_REQUIRES(ep->lock)
{
	const uint8_t *bytes = ep->memory + ep->messages_at + wc->wr_id * AW_XS_MSG_LEN;

	ep->changes++;
	if (aw_xs_stream_message(&ep->stream, bytes, wc->byte_len) == 0)
		return;
	rdma_disconnect(ep->id);
	aw_xs_ep_end(ep, EPROTO);
}

/*
 * Ends the connection: the QP has refused or flushed a WR. The CQ still has what the peer sent
 * before, perhaps its end of the stream. No receives are posted any more, so that the CQ becomes
 * empty. An endpoint that disconnects has its QP flushed at once in the roce persona, and ends with DISCONNECTED: a process that
 * ended before would take from TCP what the peer has still to get.
 */
static void end_by_qp(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(ep->recv_cq.cq, 1, &wc) > 0)
		if (wc.status == IBV_WC_SUCCESS)
			on_receive(ep, &wc);
	if (!ep->disconnecting)
		aw_xs_ep_end(ep, 0);
}

static int post_chain(struct aw_xs_ep *ep, struct chain *c) AW_REQUIRES(ep->lock)
{
	struct ibv_send_wr *bad;

	if (c->wrs == 0)
		return 0;
	if (ibv_post_send(ep->id->qp, c->wr, &bad) == 0)
		return 0;
	end_by_qp(ep);
	return -ECONNRESET;
}

int aw_xs_ep_post_work(struct aw_xs_ep *ep, const struct aw_xs_work *work)
{
	struct chain c;

	chain_begin(&c);
	add_work(ep, &c, work);
	return post_chain(ep, &c);
}

void aw_xs_ep_pump(struct aw_xs_ep *ep, uint32_t min)
{
	struct aw_xs_work work;
	struct chain c;
	int err;

	if (ep->phase != AW_XS_PHASE_UP)
		return;
	if (ep->maps_due > 0)
		aw_xs_ep_announce_maps(ep);
	do {
		chain_begin(&c);
		while (c.works < CHAIN_MAX && aw_xs_stream_next(&ep->stream, min, &work))
			add_work(ep, &c, &work);
		err = post_chain(ep, &c);
	} while (!err && c.works == CHAIN_MAX);
}

/* Processes receive completions. True: there may be more. */
static bool take_receives(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock)
{
	struct ibv_wc wc[POLL_MAX];
	int n = ibv_poll_cq(ep->recv_cq.cq, POLL_MAX, wc);
	bool lost = n < 0;

	for (int i = 0; i < n; i++) {
		if (wc[i].status == IBV_WC_SUCCESS)
			on_receive(ep, &wc[i]);
		else
			lost = true;
	}
	if (!lost && n > 0)
		lost = aw_xs_ep_post_receives(ep, (uint32_t)wc[0].wr_id, (uint32_t)n) != 0;
	if (lost && ep->phase != AW_XS_PHASE_OVER)
		end_by_qp(ep);
	return n == POLL_MAX;
}

void aw_xs_ep_reap_sends(struct aw_xs_ep *ep)
{
	struct ibv_wc wc[POLL_MAX];
	int n;

	if (!ep->send_cq.cq)
		return;
	do {
		n = ibv_poll_cq(ep->send_cq.cq, POLL_MAX, wc);
		for (int i = 0; i < n; i++) {
			uint32_t wrs = wc[i].wr_id >> 8 & 0xff;
			bool sent = wc[i].status == IBV_WC_SUCCESS;

			if (wrs > 0 && sent) {
				aw_xs_stream_done(&ep->stream, wrs, (uint32_t)(wc[i].wr_id >> 16));
				ep->changes++;
			}
			if (wc[i].wr_id & ID_CALLER)
				complete_caller_wr(ep, sent ? 0 : ECONNRESET);
		}
	} while (n == POLL_MAX);
}

void aw_xs_ep_progress(struct aw_xs_ep *ep)
{
	const struct aw_xs_stream *s = &ep->stream;

	ep->calls++;
	/* WRs of callers complete behind the end, too. */
	if (ep->phase == AW_XS_PHASE_OVER && ep->caller_wrs > 0)
		aw_xs_ep_reap_sends(ep);
	if (ep->phase == AW_XS_PHASE_IDLE || ep->phase == AW_XS_PHASE_OVER)
		return;
	if (ep->phase != AW_XS_PHASE_UP)
		aw_xs_ep_cm_progress(ep);
	if (ep->phase != AW_XS_PHASE_UP)
		return;
	/* At most recv_count completions: a peer may send faster than this thread processes. */
	for (uint32_t taken = 0; taken < ep->recv_count && take_receives(ep); taken += POLL_MAX)
		;
	if (ep->caller_wrs > 0 || s->put - s->freed > SEND_LAZY ||
	    s->put - s->freed > s->mem.send_len / 2 || s->sq_used > s->sq_size / 2)
		aw_xs_ep_reap_sends(ep); /* for room in the ring or the SQ */
	aw_xs_ep_pump(ep, 0);
}

/* Adds a caller's callback, just before its WR is posted. */
static void add_caller_wr(struct aw_xs_ep *ep, struct aw_xs_caller_wr caller) AW_REQUIRES(ep->lock)
{
	ep->caller_wr[(ep->caller_first + ep->caller_wrs++) % AW_XS_CALLER_WRS_MAX] = caller;
}

/* Posts a chain whose first WR is the caller's. Returns 0 if that one was posted, or a negative errno. */
static int post_caller_chain(struct aw_xs_ep *ep, struct chain *c, struct aw_xs_caller_wr caller)
	AW_REQUIRES(ep->lock)
{
	struct ibv_send_wr *bad = NULL;
	int err;

	c->wr[0].wr_id = ID_CALLER;
	c->wr[0].send_flags |= IBV_SEND_SIGNALED;
	add_caller_wr(ep, caller);
	err = ibv_post_send(ep->id->qp, c->wr, &bad);
	if (!err)
		return 0;
	if (bad == c->wr)
		ep->caller_wrs--;
	if (c->works > 0)
		end_by_qp(ep); /* the stream has made works that the peer does not get */
	return bad == c->wr ? -err : 0;
}

/* Returns 0 if a caller's WR may be posted, or a negative errno. */
static int caller_refusal(const struct aw_xs_ep *ep) AW_REQUIRES(ep->lock)
{
	if (ep->phase != AW_XS_PHASE_UP)
		return ep->phase == AW_XS_PHASE_OVER ? -EPIPE : -ENOTCONN;
	return ep->caller_wrs == AW_XS_CALLER_WRS_MAX ? -EAGAIN : 0;
}

/* Returns 0 if a caller's WR and the note may be posted, or a negative errno. */
static int post_refusal(const struct aw_xs_ep *ep, const struct iovec *note) AW_REQUIRES(ep->lock)
{
	int refusal = caller_refusal(ep);

	if (!refusal && note && ep->stream.tx_wanted != AW_XS_OPEN)
		refusal = -EPIPE;
	if (!refusal && note && aw_xs_stream_room(&ep->stream) < note->iov_len)
		refusal = -EAGAIN;
	return refusal;
}

int aw_xs_ep_post(struct aw_xs_ep *ep, const struct ibv_send_wr *wr, const struct iovec *note,
		  void (*done)(void *arg, int err), void *arg)
{
	struct ibv_send_wr *own;
	struct aw_xs_work work;
	struct chain c;
	int err;

	pthread_mutex_lock(&ep->lock);
	if (post_refusal(ep, note))
		aw_xs_ep_progress(ep);
	err = post_refusal(ep, note);
	if (!err) {
		chain_begin(&c);
		own = add_wr(&c, wr->opcode);
		own->wr = wr->wr;
		add_sge(&c, own, (const uint8_t *)(uintptr_t)wr->sg_list->addr, wr->sg_list->length,
			wr->sg_list->lkey);
		if (note)
			(void)aw_xs_stream_put(&ep->stream, note, 1);
		while (note && c.works < CHAIN_MAX - 1 && aw_xs_stream_next(&ep->stream, 0, &work))
			add_work(ep, &c, &work);
		err = post_caller_chain(ep, &c, (struct aw_xs_caller_wr){ done, arg });
	}
	if (!err && note)
		aw_xs_ep_pump(ep, 0);
	/* Most Writes complete at once: nobody need be woken for them. */
	if (!err)
		aw_xs_ep_reap_sends(ep);
	aw_xs_ep_unlock(ep);
	return err;
}

ssize_t aw_xs_ep_send_zero(struct aw_xs_ep *ep, const void *buf, size_t len, uint32_t lkey,
			   void (*done)(void *arg, int err), void *arg)
{
	struct aw_xs_work work;
	struct chain c;
	ssize_t taken;

	pthread_mutex_lock(&ep->lock);
	aw_xs_ep_progress(ep);
	taken = caller_refusal(ep);
	if (!taken && ep->stream.tx_wanted != AW_XS_OPEN)
		taken = -EPIPE;
	if (!taken)
		taken = aw_xs_stream_direct(&ep->stream, len, &work);
	/* One message, whose completion calls the caller's callback. */
	if (taken > 0) {
		work.span[work.spans++] = (struct aw_xs_span){ buf, (uint32_t)taken };
		chain_begin(&c);
		add_work(ep, &c, &work);
		c.sge[0].lkey = lkey;
		c.wr[c.wrs - 1].wr_id |= ID_CALLER;
		add_caller_wr(ep, (struct aw_xs_caller_wr){ done, arg });
		post_chain(ep, &c);
	}
	if (taken == 0 && len > 0)
		taken = -EAGAIN;
	aw_xs_ep_unlock(ep);
	return taken;
}

bool aw_xs_ep_is_behind(const struct aw_xs_ep *ep)
{
	const struct aw_xs_stream *s = &ep->stream;

	if (ep->phase == AW_XS_PHASE_IDLE || ep->phase == AW_XS_PHASE_OVER)
		return false;
	return s->put != s->posted || (s->tx_wanted > s->tx_end && !aw_xs_stream_has_ended(s));
}

bool aw_xs_ep_is_over(const struct aw_xs_ep *ep)
{
	const struct aw_xs_stream *s = &ep->stream;

	return s->error || s->rx_end == AW_XS_GONE || ep->phase == AW_XS_PHASE_OVER;
}

bool aw_xs_ep_is_flushed(struct aw_xs_ep *ep)
{
	const struct aw_xs_stream *s = &ep->stream;

	aw_xs_ep_reap_sends(ep);
	if (aw_xs_ep_is_over(ep))
		return true;
	return s->put == s->freed && (s->tx_wanted == AW_XS_OPEN || aw_xs_stream_has_ended(s)) &&
	       (s->tx_wanted == AW_XS_OPEN || s->sq_used == 0);
}

void aw_xs_ep_arm_cq(struct aw_xs_cq *cq)
{
	if (!cq->armed && ibv_req_notify_cq(cq->cq, 0) == 0)
		cq->armed = true;
}

/*
 * Posts a Write of no bytes, whose completion wakes the threads that sleep on the channel. It takes the place of a caller's WR in
 * the SQ.
 */
static void post_nudge(struct aw_xs_ep *ep) AW_REQUIRES(ep->lock)
{
	struct chain c;

	if (!ep->id || !ep->id->qp || ep->phase < AW_XS_PHASE_UP ||
	    ep->caller_wrs == AW_XS_CALLER_WRS_MAX)
		return;
	aw_xs_ep_arm_cq(&ep->send_cq);
	chain_begin(&c);
	add_wr(&c, IBV_WR_RDMA_WRITE);
	(void)post_caller_chain(ep, &c, (struct aw_xs_caller_wr){ NULL, NULL });
}

void aw_xs_ep_wake_sleepers(struct aw_xs_ep *ep)
{
	bool self = ep->poller && pthread_equal(ep->poller_id, pthread_self());
	bool poller = ep->poller && !self && ep->poller_changes != ep->changes;
	bool sleeper = ep->sleeping && ep->sleeper_changes != ep->changes;

	if (poller)
		ep->poller_changes = ep->changes;
	if (sleeper)
		ep->sleeper_changes = ep->changes;
	if (ep->waiters > 0)
		pthread_cond_broadcast(&ep->changed);
	if ((poller || sleeper) && ep->needs_nudge)
		post_nudge(ep);
	ep->needs_nudge = false;
}

void aw_xs_ep_unlock(struct aw_xs_ep *ep)
{
	/*
	 * While callers' WRs are in progress and a thread sleeps for the endpoint, the CQ of sends is armed: the thread may have
	 * gone to sleep before they were posted, or the event of an earlier one was taken.
	 */
	if (ep->caller_wrs > 0 && !ep->send_cq.armed && ep->phase == AW_XS_PHASE_UP &&
	    (ep->poller || ep->sleeping)) {
		aw_xs_ep_arm_cq(&ep->send_cq);
		aw_xs_ep_reap_sends(ep);
	}
	aw_xs_ep_wake_sleepers(ep);
	if (!ep->listed && ep->waiters == 0 && aw_xs_ep_is_behind(ep))
		aw_xs_service_behind(ep);
	pthread_mutex_unlock(&ep->lock);
}
