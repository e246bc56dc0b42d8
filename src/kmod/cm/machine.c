// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The states of a connection and its moves between them, all made by its worker. RFC 5044 7.1, RFC
// 6581.
#include "core/attempt.h"
#include "core/setup_term.h"
#include "kmod/cm/addr.h"
#include "kmod/cm/conn.h"
#include "kmod/cm/order.h"
#include "kmod/cm/secure.h"
#include "kmod/qp/qp.h"
#include "kmod/tcp/linger.h"

static const bool has_deadline[] = {
	[AWK_CONN_WAITING] = true,	 [AWK_CONN_CONNECTING] = true,
	[AWK_CONN_REFUSED] = true,	 [AWK_CONN_SECURING] = true,
	[AWK_CONN_SENDING] = true,	 [AWK_CONN_AWAIT_REPLY] = true,
	[AWK_CONN_AWAIT_REQUEST] = true, [AWK_CONN_DECIDING] = true,
	[AWK_CONN_ANSWERING] = false,	 [AWK_CONN_RUNNING] = false,
	[AWK_CONN_OVER] = false,	 [AWK_CONN_DONE] = false,
};

void awk_conn_fail(struct awk_conn *c, int err)
{
	struct socket *sock;

	awk_order_pass(c);
	sock = awk_conn_take_sock(c);
	c->err = err;
	if (sock)
		awk_sock_close(sock);
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
 * the program's, which may have answered it by now: then connection and socket are that thread's. A handshake that ends at this
 * moment brings the worker here again.
 */
static void fail_seen(struct awk_conn *c, enum awk_conn_state seen, int err)
{
	if (seen == AWK_CONN_SECURING && !awk_secure_stop(c))
		return;
	if (seen != AWK_CONN_DECIDING || awk_conn_claim(c))
		awk_conn_fail(c, err);
}

static void step_secure(struct awk_conn *c)
{
	int err = awk_secure_try(c);

	if (err == -EINPROGRESS)
		return;
	if (err) {
		awk_conn_fail(c, err);
		return;
	}
	awk_conn_watch(c);
	awk_conn_enter(c, c->initiator ? AWK_CONN_SENDING : AWK_CONN_AWAIT_REQUEST);
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

static int err_of(enum aw_setup setup)
{
	if (setup == AW_SETUP_NO_RTR)
		return -EOPNOTSUPP;
	return setup == AW_SETUP_IRD ? -ENOMEM : -EPROTO;
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

static void step_reply(struct awk_conn *c)
{
	u8 asked = c->out.octets[17]; /* RFC 5044 7.1.1: the revision, behind key and flags */
	enum aw_attempt_next next = AW_ATTEMPT_FAILED;
	enum aw_error why = AW_OK;
	struct mpa_frame frame;
	enum aw_setup setup;
	int err = awk_frame_recv(c->sock, &c->in, &frame);

	if (err == -EAGAIN)
		return;
	if (err == -ECONNRESET)
		next = aw_attempt_closed(asked, c->again, c->in.done);
	if (!err) {
		setup = aw_mpa_on_reply(&c->local, &frame, &c->result);
		err = err_of(setup);
		why = aw_attempt_terminate(setup);
		if (setup == AW_SETUP_OK)
			next = aw_attempt_replied(asked, &c->result);
	}
	switch (next) {
	case AW_ATTEMPT_STREAM:
		c->has_peer = true;
		begin_stream(c);
		break;
	case AW_ATTEMPT_REJECTED:
		c->has_peer = true;
		awk_conn_fail(c, -ECONNREFUSED);
		break;
	case AW_ATTEMPT_REPEAT:
	case AW_ATTEMPT_PLAIN:
		err = awk_conn_open_again(c, next == AW_ATTEMPT_PLAIN);
		if (err)
			awk_conn_fail(c, err);
		else
			awk_conn_kick(c);
		break;
	case AW_ATTEMPT_FAILED:
		if (why != AW_OK)
			conn_terminate(c, why, frame.flags & MPA_FLAG_MARKERS);
		awk_conn_fail(c, err);
		break;
	}
}

static void step_send(struct awk_conn *c)
{
	int err = awk_frame_send(c->sock, &c->out);

	if (!err)
		awk_conn_enter(c, AWK_CONN_AWAIT_REPLY);
	else if (err != -EAGAIN)
		awk_conn_fail(c, err);
}

/* Follows what TCP says of the connection in CONNECTING. */
static void follow_tcp(struct awk_conn *c, int err)
{
	u32 pause_ms = aw_attempt_pause_ms(c->refusals);

	if (err == -EINPROGRESS)
		return;
	if (err == -ECONNREFUSED && pause_ms > 0) {
		c->refusals++;
		awk_conn_enter(c, AWK_CONN_REFUSED);
		awk_conn_set_deadline(c, pause_ms);
		return;
	}
	if (err) {
		awk_conn_fail(c, err);
		return;
	}
	awk_order_pass(c);
	awk_addr_learn(c->sock, &c->local_addr, &c->remote_addr);
	if (c->tls)
		awk_secure_begin(c);
	else
		awk_conn_enter(c, AWK_CONN_SENDING);
}

static void step_connect(struct awk_conn *c)
{
	follow_tcp(c, awk_conn_try_tcp(c));
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
	follow_tcp(c, err);
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
	[AWK_CONN_SECURING] = step_secure,
	[AWK_CONN_SENDING] = step_send,
	[AWK_CONN_AWAIT_REPLY] = step_reply,
	[AWK_CONN_AWAIT_REQUEST] = step_request,
	[AWK_CONN_DECIDING] = step_decide,
	[AWK_CONN_ANSWERING] = NULL,
	[AWK_CONN_RUNNING] = NULL,
	[AWK_CONN_OVER] = NULL,
	[AWK_CONN_DONE] = NULL,
};

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
		if (state == AWK_CONN_REFUSED || state == AWK_CONN_WAITING)
			connect_again(c);
		else
			fail_seen(c, state, -ETIMEDOUT);
		state = smp_load_acquire(&c->state);
	}
	do {
		before = state;
		if (steps[state])
			steps[state](c);
		state = smp_load_acquire(&c->state);
	} while (state != before);
}
