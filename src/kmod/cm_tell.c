// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// iw_cm's events, from the connection's worker alone and so in their order: a Request; the begin;
// the peer's leaving; the end. iwcm.c has a BUG for each other order. No lock is held during an
// event.
#include "kmod/cm_conn.h"
#include "kmod/cm_reply.h"
#include "kmod/listen.h"
#include "kmod/stream_io.h"

#define EVENT_PD_MAX U8_MAX /* the most that the event's length can express */

static struct iw_cm_event event_of(const struct awk_conn *c, enum iw_cm_event_type type, int status)
{
	return (struct iw_cm_event){
		.event = type,
		.status = status,
		.local_addr = c->near,
		.remote_addr = c->far,
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

	if (!c->heard)
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
static void take_back(struct awk_conn *c, struct iw_cm_event *event)
{
	event->status = -ENOMEM;
	event->private_data_len = 0;
	c->cm_id->event_handler(c->cm_id, event);
	c->told |= AWK_TOLD_DISCONNECT | AWK_TOLD_CLOSE;
	awk_qp_lock(c->qp);
	aw_qp_abort(&c->qp->core, AW_E_LOCAL_CATASTROPHIC);
	awk_qp_unlock(c->qp);
	awk_stream_kick(c->qp);
}

static void tell_reply(struct awk_conn *c, int status)
{
	struct iw_cm_event event = event_of(c, IW_CM_EVENT_CONNECT_REPLY, status);

	describe(c, &event);
	if (c->cm_id->event_handler(c->cm_id, &event) == 0)
		return;
	if (status == 0) {
		take_back(c, &event);
		return;
	}
	event.private_data_len = 0;
	c->cm_id->event_handler(c->cm_id, &event);
}

static void tell_established(struct awk_conn *c)
{
	struct iw_cm_event event = event_of(c, IW_CM_EVENT_ESTABLISHED, 0);

	describe(c, &event);
	event.private_data_len = 0; /* the Request had it, and here it is not copied */
	c->cm_id->event_handler(c->cm_id, &event);
}

static void tell_plain(struct awk_conn *c, enum iw_cm_event_type type)
{
	struct iw_cm_event event = event_of(c, type, 0);

	c->cm_id->event_handler(c->cm_id, &event);
}

/* True once for each event. */
static bool tell_once(struct awk_conn *c, enum awk_conn_told what)
{
	bool first = !(c->told & what);

	c->told |= what;
	return first;
}

static void tell_running(struct awk_conn *c)
{
	bool ended = test_bit(AWK_CONN_ENDED, &c->flags);

	if (tell_once(c, AWK_TOLD_BEGIN)) {
		if (c->initiator)
			tell_reply(c, 0);
		else
			tell_established(c);
	}
	if ((ended || test_bit(AWK_CONN_LEAVES, &c->flags)) && tell_once(c, AWK_TOLD_DISCONNECT))
		tell_plain(c, IW_CM_EVENT_DISCONNECT);
	if (!ended)
		return;
	if (tell_once(c, AWK_TOLD_CLOSE))
		tell_plain(c, IW_CM_EVENT_CLOSE);
	awk_conn_finish(c);
}

/* The listener may have no room for the Request, or end: then the peer gets a Reject. */
static void tell_request(struct awk_conn *c)
{
	struct iw_cm_event event = event_of(c, IW_CM_EVENT_CONNECT_REQUEST, 0);
	struct awk_listener *listener = c->listener;
	int err = -ECONNREFUSED;

	describe(c, &event);
	if (awk_listener_claim(c)) {
		err = awk_listener_tell(listener, &event);
		awk_listener_told(listener);
	}
	if (err && awk_conn_claim(c, AWK_CONN_ANSWERING))
		awk_conn_reject(c, NULL, 0);
}

static void tell_over(struct awk_conn *c)
{
	if (c->initiator && tell_once(c, AWK_TOLD_BEGIN))
		tell_reply(c, c->err);
	awk_conn_finish(c);
}

void awk_conn_tell(struct awk_conn *c)
{
	if (smp_load_acquire(&c->state) == AWK_CONN_DECIDING && tell_once(c, AWK_TOLD_REQUEST))
		tell_request(c);
	switch (smp_load_acquire(&c->state)) {
	case AWK_CONN_RUNNING:
		tell_running(c);
		break;
	case AWK_CONN_OVER:
		tell_over(c);
		break;
	case AWK_CONN_WAITING:
	case AWK_CONN_CONNECTING:
	case AWK_CONN_REFUSED:
	case AWK_CONN_SENDING:
	case AWK_CONN_AWAIT_REPLY:
	case AWK_CONN_AWAIT_REQUEST:
	case AWK_CONN_DECIDING:
	case AWK_CONN_ANSWERING:
	case AWK_CONN_DONE:
		break;
	}
}
