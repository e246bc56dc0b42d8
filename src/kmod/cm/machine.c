// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The states of a connection and its moves between them, all made by its worker. RFC 5044 7.1, RFC
// 6581.
#include "core/setup_term.h"
#include "kmod/cm/addr.h"
#include "kmod/cm/conn.h"
#include "kmod/cm/order.h"
#include "kmod/qp/qp.h"
#include "kmod/tcp/linger.h"

static const bool has_deadline[] = {
	[AWK_CONN_WAITING] = true,  [AWK_CONN_CONNECTING] = true,  [AWK_CONN_REFUSED] = true,
	[AWK_CONN_SENDING] = true,  [AWK_CONN_AWAIT_REPLY] = true, [AWK_CONN_AWAIT_REQUEST] = true,
	[AWK_CONN_DECIDING] = true, [AWK_CONN_ANSWERING] = false,  [AWK_CONN_RUNNING] = false,
	[AWK_CONN_OVER] = false,    [AWK_CONN_DONE] = false,
};

void awk_conn_fail(struct awk_conn *c, int err)
{
	struct socket *sock;

	awk_order_pass(c);
	sock = awk_conn_take_sock(c);
	c->err = err;
	if (sock)
		sock_release(sock);
	awk_conn_enter(c, AWK_CONN_OVER);
}

/* Sends a Terminate as the stream's first FPDU, then closes the socket. */
static void conn_terminate(struct awk_conn *c, enum aw_error error, bool markers)
{
	struct socket *sock = awk_conn_take_sock(c);

	c->out.done = 0;
	c->out.len = aw_setup_term(error, markers, c->out.octets);
	awk_frame_send(sock, &c->out); /* the connection ends either way */
	awk_linger(sock);
}

int awk_conn_attach(struct awk_conn *c)
{
	struct aw_stream stream = aw_stream_agreed(&c->result, c->initiator);
	int err;

	awk_conn_unwatch(c);
	err = awk_stream_attach(c->qp, c->sock, &stream);
	if (err)
		return err;
	c->sock = NULL;
	del_timer(&c->timer);
	awk_conn_enter(c, AWK_CONN_RUNNING);
	return 0;
}

/*
 * Called by the worker for a connection that it saw in this state. A Request that was reported is
 * the program's, which may have answered it by now: then connection and socket are that thread's.
 */
static void fail_seen(struct awk_conn *c, enum awk_conn_state seen, int err)
{
	if (seen != AWK_CONN_DECIDING || awk_conn_claim(c))
		awk_conn_fail(c, err);
}

static void step_decide(struct awk_conn *c)
{
	if (test_bit(AWK_CONN_PEER_CLOSED, &c->flags))
		fail_seen(c, AWK_CONN_DECIDING, -ECONNRESET);
}

static void step_request(struct awk_conn *c)
{
	struct mpa_frame frame;
	int err = awk_frame_recv(c->sock, &c->in, &frame);

	if (err == -EAGAIN)
		return;
	if (!err && aw_mpa_on_request(&c->local, &frame, &c->result) != AW_SETUP_OK)
		err = -EPROTO;
	if (err) {
		awk_conn_fail(c, err);
		return;
	}
	c->has_peer = true;
	if (awk_sock_is_over(c->sock->sk))
		set_bit(AWK_CONN_PEER_CLOSED, &c->flags);
	awk_conn_set_deadline(c, AWK_DECIDE_MS);
	awk_conn_enter(c, AWK_CONN_DECIDING);
}

/* RFC 6581 8: only these two errors have a Terminate; for all others the socket is closed. */
static void fail_setup(struct awk_conn *c, enum aw_setup setup, const struct mpa_frame *reply)
{
	bool markers = reply->flags & MPA_FLAG_MARKERS;
	int err = -EPROTO;

	if (setup == AW_SETUP_NO_RTR) {
		conn_terminate(c, AW_E_MPA_NO_MATCHING_RTR, markers);
		err = -EOPNOTSUPP;
	} else if (setup == AW_SETUP_IRD) {
		conn_terminate(c, AW_E_MPA_INSUFFICIENT_IRD, markers);
		err = -ENOMEM;
	}
	awk_conn_fail(c, err);
}

/* Sends the Request again over another connection; plainly: as a peer of revision 1 understands it. */
static void ask_again(struct awk_conn *c, bool plainly)
{
	int err = awk_conn_open_again(c, plainly);

	if (err)
		awk_conn_fail(c, err);
	else
		awk_conn_kick(c);
}

static void begin_stream(struct awk_conn *c)
{
	int err = awk_conn_attach(c);

	if (!err)
		return;
	/* RFC 6581 9.3: a Terminate notifies the peer of an error of our own. */
	conn_terminate(c, AW_E_MPA_LOCAL, c->result.markers_tx);
	awk_conn_fail(c, err == -EINVAL ? -ECONNABORTED : err);
}

/*
 * RFC 6581 10: a peer that answers a Request of revision 2 with a Reply of revision 1 has taken RFC
 * 6581's bytes for private data, so it has agreed to something else than was asked.
 */
static void judge_reply(struct awk_conn *c, u8 asked)
{
	c->has_peer = true;
	if (c->result.rejected) {
		awk_conn_fail(c, -ECONNREFUSED);
	} else if (c->result.revision < asked) {
		c->has_peer = false;
		ask_again(c, true);
	} else {
		begin_stream(c);
	}
}

static u8 asked_revision(const struct awk_conn *c)
{
	return c->out.octets[17]; /* RFC 5044 7.1.1: behind key and flags */
}

/*
 * A peer of revision 1 may take an enhanced Request for malformed, and close without an answer. The same is seen where
 * its program has just ended or closed its listener, and another listener may be there the next moment: to that one revision 1 would
 * do harm, so the first time the Request is repeated as it was.
 */
static bool may_be_plain(const struct awk_conn *c, int err)
{
	return err == -ECONNRESET && asked_revision(c) > 1 && c->in.done == 0;
}

static void step_reply(struct awk_conn *c)
{
	u8 asked = asked_revision(c);
	struct mpa_frame frame;
	enum aw_setup setup;
	int err = awk_frame_recv(c->sock, &c->in, &frame);

	if (err == -EAGAIN)
		return;
	if (err && may_be_plain(c, err)) {
		ask_again(c, c->again);
		return;
	}
	if (err) {
		awk_conn_fail(c, err);
		return;
	}
	setup = aw_mpa_on_reply(&c->local, &frame, &c->result);
	if (setup == AW_SETUP_OK)
		judge_reply(c, asked);
	else
		fail_setup(c, setup, &frame);
}

static void step_send(struct awk_conn *c)
{
	int err = awk_frame_send(c->sock, &c->out);

	if (!err)
		awk_conn_enter(c, AWK_CONN_AWAIT_REPLY);
	else if (err != -EAGAIN)
		awk_conn_fail(c, err);
}

/*
 * A server that closes its listener and opens another on the same port (perftest does, between its
 * two connections) is away for a moment. False when there are no more pauses.
 */
static bool pause_refused(struct awk_conn *c)
{
	if (c->refusals == AWK_REFUSALS_MAX)
		return false;
	awk_conn_enter(c, AWK_CONN_REFUSED);
	awk_conn_set_deadline(c, 1u << c->refusals++);
	return true;
}

static void connected(struct awk_conn *c, int err)
{
	if (err == -EINPROGRESS || (err == -ECONNREFUSED && pause_refused(c)))
		return;
	if (err) {
		awk_conn_fail(c, err);
		return;
	}
	awk_order_pass(c);
	awk_addr_learn(c->sock, &c->local_addr, &c->remote_addr);
	awk_conn_enter(c, AWK_CONN_SENDING);
}

static void step_connect(struct awk_conn *c)
{
	connected(c, awk_conn_try_tcp(c));
}

/* The first call after a failure may only clear the old attempt. A connection that has waited connects for the first time. */
static void connect_again(struct awk_conn *c)
{
	bool waited = c->state == AWK_CONN_WAITING;
	int err;

	awk_order_lead(c);
	err = awk_conn_try_tcp(c);
	if (err == -ECONNABORTED)
		err = awk_conn_try_tcp(c);
	if (waited)
		awk_order_sent(c);
	awk_conn_enter(c, AWK_CONN_CONNECTING);
	awk_conn_set_deadline(c, AWK_STARTUP_MS);
	connected(c, err);
}

static void step_wait(struct awk_conn *c)
{
	if (!awk_order_waits(c))
		connect_again(c);
}

static void (*const steps[])(struct awk_conn *c) = {
	[AWK_CONN_WAITING] = step_wait,
	[AWK_CONN_CONNECTING] = step_connect,
	[AWK_CONN_REFUSED] = NULL,
	[AWK_CONN_SENDING] = step_send,
	[AWK_CONN_AWAIT_REPLY] = step_reply,
	[AWK_CONN_AWAIT_REQUEST] = step_request,
	[AWK_CONN_DECIDING] = step_decide,
	[AWK_CONN_ANSWERING] = NULL,
	[AWK_CONN_RUNNING] = NULL,
	[AWK_CONN_OVER] = NULL,
	[AWK_CONN_DONE] = NULL,
};

static void time_out(struct awk_conn *c, enum awk_conn_state state)
{
	if (state == AWK_CONN_REFUSED || state == AWK_CONN_WAITING)
		connect_again(c);
	else
		fail_seen(c, state, -ETIMEDOUT);
}

/*
 * Goes as far as the connection gets now: one state's step may leave the next state with its work
 * done already.
 */
void awk_conn_step(struct awk_conn *c)
{
	enum awk_conn_state before, state = smp_load_acquire(&c->state);

	if (!has_deadline[state])
		return;
	if (test_bit(AWK_CONN_ABANDONED, &c->flags)) {
		fail_seen(c, state, -ECONNABORTED);
		return;
	}
	if (time_after_eq(jiffies, c->deadline)) {
		time_out(c, state);
		state = smp_load_acquire(&c->state);
	}
	do {
		before = state;
		if (steps[state])
			steps[state](c);
		state = smp_load_acquire(&c->state);
	} while (state != before);
}
