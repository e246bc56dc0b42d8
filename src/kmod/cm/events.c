// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// iw_cm's events, from the connection's worker alone and so in their order: a Request; the begin;
// the peer's leaving; the end. iwcm.c has a BUG for each other order. No lock is held during an
// event.
#include "kmod/cm/conn.h"
#include "kmod/cm/half_open.h"
#include "kmod/qp/qp.h"

#define EVENT_PD_MAX U8_MAX /* the most that the event's length can express */

static struct iw_cm_event event_of(const struct awk_conn *c, enum iw_cm_event_type type, int status)
{
	return (struct iw_cm_event){
		.event = type,
		.status = status,
		.local_addr = c->local_addr,
		.remote_addr = c->remote_addr,
		.provider_data = (void *)(unsigned long)c->handle,
	};
}

/*
 * The depth that this end allows, and no more than the peer will use; from a peer that rejects, the
 * depth that it sent.
 */
static u8 depth(const struct aw_mpa_result *result, u16 own, u16 peer)
{
	bool peer_says = result->enhanced && (result->rejected || peer < own);

	return min_t(u16, peer_says ? peer : own, AWK_RD_MAX);
}

/* The event describes the peer: its ird is what this end may have outstanding. */
static void describe(const struct awk_conn *c, struct iw_cm_event *event)
{
	const struct aw_mpa_result *result = &c->result;

	if (!c->has_peer)
		return;
	event->ird = depth(result, result->ord, result->peer_ird);
	event->ord = depth(result, result->ird, result->peer_ord);
	event->private_data = (void *)result->pd;
	event->private_data_len = min_t(u16, result->pd_len, EVENT_PD_MAX);
}

/*
 * Called when the stream is up and iw_cm could not take the event: reports a failure, and nothing
 * after it.
 */
static void abort_undelivered(struct awk_conn *c, struct iw_cm_event *event)
{
	event->status = -ENOMEM;
	event->private_data_len = 0;
	c->cm_id->event_handler(c->cm_id, event);
	c->delivered |= AWK_DELIVERED_DISCONNECT | AWK_DELIVERED_CLOSE;
	awk_qp_lock(c->qp);
	aw_qp_abort(&c->qp->core, AW_E_LOCAL_CATASTROPHIC);
	awk_qp_unlock(c->qp);
	awk_qp_kick(c->qp);
}

static void deliver_reply(struct awk_conn *c, int status)
{
	struct iw_cm_event event = event_of(c, IW_CM_EVENT_CONNECT_REPLY, status);

	describe(c, &event);
	if (c->cm_id->event_handler(c->cm_id, &event) == 0)
		return;
	if (status == 0) {
		abort_undelivered(c, &event);
		return;
	}
	event.private_data_len = 0;
	c->cm_id->event_handler(c->cm_id, &event);
}

static void deliver_established(struct awk_conn *c)
{
	struct iw_cm_event event = event_of(c, IW_CM_EVENT_ESTABLISHED, 0);

	describe(c, &event);
	event.private_data_len = 0; /* the Request had it, and here it is not copied */
	c->cm_id->event_handler(c->cm_id, &event);
}

static void deliver_plain(struct awk_conn *c, enum iw_cm_event_type type)
{
	struct iw_cm_event event = event_of(c, type, 0);

	c->cm_id->event_handler(c->cm_id, &event);
}

/* True once for each event. */
static bool is_first(struct awk_conn *c, enum awk_conn_delivered what)
{
	bool first = !(c->delivered & what);

	c->delivered |= what;
	return first;
}

static void deliver_running(struct awk_conn *c)
{
	bool ended = test_bit(AWK_CONN_STREAM_ENDED, &c->flags);
	bool ending = ended || test_bit(AWK_CONN_STREAM_ENDING, &c->flags);

	if (is_first(c, AWK_DELIVERED_BEGIN)) {
		if (c->initiator)
			deliver_reply(c, 0);
		else
			deliver_established(c);
	}
	if (ending && is_first(c, AWK_DELIVERED_DISCONNECT))
		deliver_plain(c, IW_CM_EVENT_DISCONNECT);
	if (!ended)
		return;
	if (is_first(c, AWK_DELIVERED_CLOSE))
		deliver_plain(c, IW_CM_EVENT_CLOSE);
	awk_conn_finish(c);
}

void awk_conn_deliver(struct awk_conn *c)
{
	struct iw_cm_event request;

	if (smp_load_acquire(&c->state) == AWK_CONN_DECIDING &&
	    is_first(c, AWK_DELIVERED_REQUEST)) {
		request = event_of(c, IW_CM_EVENT_CONNECT_REQUEST, 0);
		describe(c, &request);
		/* The listener may have no room for the Request, or end: then the peer gets a Reject. */
		if (awk_half_open_deliver(c, &request) && awk_conn_claim(c))
			awk_conn_reject(c, NULL, 0);
	}
	switch (smp_load_acquire(&c->state)) {
	case AWK_CONN_RUNNING:
		deliver_running(c);
		break;
	case AWK_CONN_OVER:
		if (c->initiator && is_first(c, AWK_DELIVERED_BEGIN))
			deliver_reply(c, c->err);
		if (c->listener)
			awk_half_open_forget(c);
		awk_conn_finish(c);
		break;
	case AWK_CONN_WAITING:
	case AWK_CONN_CONNECTING:
	case AWK_CONN_REFUSED:
	case AWK_CONN_SECURING:
	case AWK_CONN_SENDING:
	case AWK_CONN_AWAIT_REPLY:
	case AWK_CONN_AWAIT_REQUEST:
	case AWK_CONN_DECIDING:
	case AWK_CONN_ANSWERING:
	case AWK_CONN_DONE:
		break;
	}
}
