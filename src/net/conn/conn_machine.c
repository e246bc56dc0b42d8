// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The states of a conn and what moves it from one to the next. All steps run on the progress thread
// under the conn's lock; the resulting event runs after the lock has been released. RFC 5044 7.1,
// RFC 6581.
#include "net/conn/conn_machine.h"

#include "base/log.h"
#include "core/attempt.h"
#include "net/base/addr.h"
#include "net/base/bounds.h"
#include "net/base/io_now.h"
#include "net/base/policy.h"
#include "net/conn/cause.h"
#include "net/conn/conn_tls.h"
#include "net/conn/order.h"
#include "net/progress/linger.h"
#include "net/progress/watch.h"
#include "net/qp/replied.h"
#include "net/tls/cause.h"
#include "ring/lock.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static void step_secure(struct aw_conn *c);

static void conclude(struct aw_conn *c, enum aw_conn_state next, enum aw_conn_event event)
	AW_REQUIRES(c->lock)
{
	aw_conn_set_state(c, next);
	c->due = true;
	c->due_event = event;
}

/* The peer has connected to this end, whose program has not accepted it. */
static bool has_stranger(const struct aw_conn *c) AW_REQUIRES(c->lock)
{
	return c->state == AW_CONN_AWAIT_FIRST || c->state == AW_CONN_AWAIT_HELLO ||
	       c->state == AW_CONN_AWAIT_REQUEST || c->state == AW_CONN_DECIDING;
}

/*
 * On a socket that the program has connected or accepted, the peer's program may begin MPA at any
 * time, and TCP finds out when the peer is gone. The deadline runs only from the first byte of the
 * peer's frame, or of its part in a TLS handshake.
 */
static bool awaits_first_byte(const struct aw_conn *c) AW_REQUIRES(c->lock)
{
	return c->info.given && c->in.done == 0 && !c->started_tls &&
	       !(c->tls && aw_tls_has_begun(c->tls));
}

/* Logged for the user: the peer's program may begin MPA later, or never. */
static void log_waits(const struct aw_conn *c) AW_REQUIRES(c->lock)
{
	const char *peer = aw_addr_text(&c->info.peer).text;

	if (c->state == AW_CONN_SECURING)
		aw_log(AW_LOG_WARN,
		       "connection waits on peer %s: no answer to the tls handshake yet: its program comes late, or does "
		       "not run with --tls require",
		       peer);
	else if (c->state == AW_CONN_AWAIT_REPLY)
		aw_log(AW_LOG_WARN,
		       "connection waits on peer %s: no mpa reply yet: its program comes late, or speaks no iwarp",
		       peer);
	else
		aw_log(AW_LOG_INFO, "connection waits on peer %s: no mpa request yet", peer);
}

static enum aw_frame_io receive(struct aw_conn *c, struct mpa_frame *frame) AW_REQUIRES(c->lock)
{
	bool awaited = awaits_first_byte(c);
	enum aw_frame_io io = aw_frame_recv(c->fd, c->tls, &c->in, frame);

	if (io == AW_FRAME_MORE && awaited && !awaits_first_byte(c))
		aw_watch_deadline(&c->watch, aw_bounds.startup_ms);
	return io;
}

/*
 * The user is told at the default level why a connection of the program's own has failed, unless the program gets a clear
 * error, or a second try follows.
 */
static void fail(struct aw_conn *c, int err, const char *cause) AW_REQUIRES(c->lock)
{
	bool is_obscure = err == EPROTO || err == EOPNOTSUPP || err == ENOMEM || err == ETIMEDOUT;
	bool told = !has_stranger(c) && !c->info.next_revision && is_obscure && aw_log_has_room();

	c->info.err = err;
	aw_log(told ? AW_LOG_ERROR : AW_LOG_INFO, "connection failed peer %s cause %s",
	       aw_addr_text(&c->info.peer).text, cause);
	aw_conn_close_fd(aw_conn_take_fd(c));
	conclude(c, AW_CONN_OVER, AW_CONN_FAILED);
}

/*
 * The session is over. The alert shall reach the peer, so the socket is not reset. The user reads the cause at either end: one
 * of the two is set up wrongly, and it may be the end that others connect to.
 */
static void fail_secure(struct aw_conn *c, const char *cause) AW_REQUIRES(c->lock)
{
	int fd = aw_conn_take_fd(c);

	if (has_stranger(c)) {
		aw_log(aw_log_has_room() ? AW_LOG_ERROR : AW_LOG_INFO,
		       "connection refused peer %s cause %s", aw_addr_text(&c->info.peer).text,
		       cause);
		aw_linger_stranger(fd);
	} else {
		aw_linger(fd);
	}
	fail(c, EPROTO, cause);
}

/* Fails the conn for each way in which no whole frame came. */
static void fail_frame(struct aw_conn *c, enum aw_frame_io io) AW_REQUIRES(c->lock)
{
	bool begun = c->in.done > 0;

	switch (io) {
	case AW_FRAME_CLOSED:
		fail(c, ECONNRESET,
		     begun ? "the peer closed in the middle of its mpa frame"
			   : "the peer closed without an mpa frame");
		break;
	case AW_FRAME_LOST:
		fail(c, errno, strerror(errno));
		break;
	case AW_FRAME_INSECURE:
		fail_secure(c, aw_tls_cause(c->tls));
		break;
	case AW_FRAME_BAD_KEY:
		fail(c, EPROTO, aw_conn_strange_cause(c, has_stranger(c)));
		break;
	case AW_FRAME_BAD_LENGTH:
		fail(c, EPROTO, "the private data of the peer's mpa frame is over 512 bytes");
		break;
	case AW_FRAME_DONE:
	case AW_FRAME_MORE:
		assert(false);
	}
}

/* Fails the conn for a whole frame that is not acceptable. */
static void fail_setup(struct aw_conn *c, enum aw_setup setup, const struct mpa_frame *frame)
	AW_REQUIRES(c->lock)
{
	char cause[AW_CONN_CAUSE_MAX];
	int err = EPROTO;

	if (setup == AW_SETUP_NO_RTR)
		err = EOPNOTSUPP;
	else if (setup == AW_SETUP_IRD)
		err = ENOMEM;
	aw_conn_print_cause(c, setup, frame, cause);
	fail(c, err, cause);
}

/* A socket that the program has connected is the only one: there is no second try. */
static uint8_t next_revision(const struct aw_conn *c, enum aw_attempt_next next, uint8_t asked)
	AW_REQUIRES(c->lock)
{
	/* Nor is there one in the clear once the peer has begun TLS. */
	if (c->info.given || c->started_tls)
		return 0;
	if (next == AW_ATTEMPT_REPEAT)
		return asked;
	return next == AW_ATTEMPT_PLAIN ? 1 : 0;
}

static void judge_reply(struct aw_conn *c, uint8_t asked) AW_REQUIRES(c->lock)
{
	enum aw_attempt_next next = aw_attempt_replied(asked, &c->info.result);

	switch (next) {
	case AW_ATTEMPT_STREAM:
		conclude(c, AW_CONN_READY, AW_CONN_ACCEPTED);
		break;
	case AW_ATTEMPT_REJECTED:
		conclude(c, AW_CONN_OVER, AW_CONN_REJECTED);
		break;
	case AW_ATTEMPT_REPEAT:
	case AW_ATTEMPT_PLAIN:
	case AW_ATTEMPT_FAILED:
		c->info.next_revision = next_revision(c, next, asked);
		fail(c, EPROTO,
		     "a reply of mpa revision 1 to a request of revision 2: set revision=1 in "
		     "--mpa (" AW_POLICY_ENV ") here");
		break;
	}
}

/* The peer's program will answer, perhaps: the Reply has its time anew. */
static void take_wait(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	if (c->waits >= aw_bounds.waits_max) {
		fail(c, ETIMEDOUT,
		     "the peer has said too often that its program has not accepted yet");
		return;
	}
	if (c->waits++ == 0)
		aw_log(AW_LOG_INFO, "connection waits on peer %s: its program has not accepted yet",
		       aw_addr_text(&c->info.peer).text);
	c->in.done = 0;
	aw_watch_deadline(&c->watch, aw_bounds.startup_ms);
}

/* The peer takes the offer: the Request is said again, behind the handshake. */
static void take_start_tls(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	aw_conn_ask_within(c);
	aw_conn_set_state(c, AW_CONN_SECURING);
	aw_watch_deadline(&c->watch, aw_bounds.startup_ms);
	step_secure(c);
}

static void step_reply(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	uint8_t asked = c->info.result.revision;
	struct mpa_frame frame;
	enum aw_frame_io io = receive(c, &frame);
	enum aw_setup setup;

	if (io == AW_FRAME_MORE)
		return;
	if (io != AW_FRAME_DONE) {
		/* A time-out of TCP is no end by the peer. */
		if (io == AW_FRAME_CLOSED || (io == AW_FRAME_LOST && errno == ECONNRESET))
			c->info.next_revision = next_revision(
				c, aw_attempt_closed(asked, c->again, c->in.done), asked);
		fail_frame(c, io);
		return;
	}
	if (aw_mpa_is_wait(&c->local, &frame)) {
		take_wait(c);
		return;
	}
	if (aw_mpa_is_start_tls(&c->local, &frame)) {
		take_start_tls(c);
		return;
	}
	setup = aw_mpa_on_reply(&c->local, &frame, &c->info.result);
	if (setup == AW_SETUP_OK) {
		judge_reply(c, asked);
		return;
	}
	if (aw_attempt_terminate(setup) != AW_OK)
		aw_conn_terminate_fd(aw_conn_take_fd(c), c->tls, aw_attempt_terminate(setup),
				     frame.flags & MPA_FLAG_MARKERS);
	fail_setup(c, setup, &frame);
}

/* The peer answers now: until then there is time for the socket, unless the program's own is not connected yet (TCP_FASTOPEN_CONNECT). */
static void request_sent(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	if (!c->info.given)
		c->segment_size = aw_uqp_ready_socket(c->fd);
}

static void step_send(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	enum aw_frame_io io = aw_frame_send(c->fd, c->tls, &c->out);

	if (io == AW_FRAME_DONE) {
		aw_conn_set_state(c, AW_CONN_AWAIT_REPLY);
		request_sent(c);
	} else if (io != AW_FRAME_MORE) {
		fail_frame(c, io);
	}
}

/* False when the conn has no more tries. */
static bool pause_refused(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	uint32_t pause_ms = aw_attempt_pause_ms(c->refusals);

	if (pause_ms == 0)
		return false;
	c->refusals++;
	aw_conn_set_state(c, AW_CONN_REFUSED);
	aw_watch_deadline(&c->watch, pause_ms);
	return true;
}

static int try_connect(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	const struct sockaddr *peer = (const struct sockaddr *)&c->info.peer;

	return aw_connect_now(c->fd, peer, aw_addr_len(peer)) == 0 ? 0 : errno;
}

/* The conn's first try, if it has waited for another. */
static void connect_again(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	aw_order_lead(c);
	int err = try_connect(c);

	/* Linux: the first connect after a failure only clears the old attempt. */
	if (err == ECONNABORTED)
		err = try_connect(c);
	aw_conn_set_state(c, AW_CONN_CONNECTING);
	if (err == 0 || err == EINPROGRESS)
		aw_watch_deadline(&c->watch, aw_bounds.startup_ms);
	else if (err != ECONNREFUSED || !pause_refused(c))
		fail(c, err, strerror(err));
}

void aw_conn_learn_local(struct aw_conn *c)
{
	socklen_t len = sizeof(c->info.local);

	if (!c->from_known)
		getsockname(c->fd, (struct sockaddr *)&c->info.local, &len);
}

void aw_conn_send_early(struct aw_conn *c)
{
	enum aw_frame_io io = AW_FRAME_MORE;

	/* A TLS handshake is left to the progress thread. */
	if (c->want.mode != AW_TLS_REQUIRE)
		io = aw_frame_send(c->fd, NULL, &c->out);
	/* TCP has taken it: the handshake is over. Until then it takes nothing, or tells the error that there is. */
	if (io == AW_FRAME_LOST) {
		c->early_errno = errno;
	} else if (c->out.done > 0) {
		aw_conn_learn_local(c);
		aw_conn_enter(c, AW_CONN_SENDING);
		if (io == AW_FRAME_DONE) {
			aw_conn_enter(c, AW_CONN_AWAIT_REPLY);
			request_sent(c);
		}
	}
}

/* True when the handshake is done. */
static bool secure(struct aw_conn *c, bool accepts) AW_REQUIRES(c->lock)
{
	bool awaited = awaits_first_byte(c);
	enum aw_tls_io io = AW_TLS_FAILED;
	int err = aw_conn_handshake(c, accepts, &io);

	if (err) {
		fail(c, err, err == ENOMEM ? "no memory for tls" : "tls is not set up: see above");
		return false;
	}
	switch (io) {
	case AW_TLS_DONE:
		aw_watch_deadline(&c->watch, aw_bounds.startup_ms);
		return true;
	case AW_TLS_MORE:
		aw_watch_events(&c->watch, aw_conn_waits[c->state].events |
						   (aw_tls_has_output(c->tls) ? EPOLLOUT : 0));
		if (awaited && !awaits_first_byte(c))
			aw_watch_deadline(&c->watch, aw_bounds.startup_ms);
		return false;
	case AW_TLS_FAILED:
		fail_secure(c, aw_tls_cause(c->tls));
		return false;
	}
	return false;
}

static void step_secure(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	if (!secure(c, false))
		return;
	aw_conn_set_state(c, AW_CONN_SENDING);
	step_send(c);
}

static void step_connect(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	socklen_t err_len = sizeof(int);
	int err = 0;

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &err_len) != 0)
		err = errno;
	/* TCP tells an error once, and the send of the Request was told. */
	if (c->early_errno)
		err = c->early_errno;
	c->early_errno = 0;
	if (err == ECONNREFUSED && !c->info.given && pause_refused(c))
		return;
	if (err) {
		fail(c, err, strerror(err));
		return;
	}
	aw_conn_learn_local(c);
	aw_watch_deadline(&c->watch, aw_bounds.startup_ms);
	if (c->want.mode == AW_TLS_REQUIRE) {
		aw_conn_set_state(c, AW_CONN_SECURING);
		step_secure(c);
		return;
	}
	aw_conn_set_state(c, AW_CONN_SENDING);
	step_send(c);
}

/* TLS is required, and the peer has begun MPA without offering it. */
static void refuse_plain(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	aw_tls_tell_plain(c->fd);
	fail_secure(c, aw_tls_plain_cause(c->in.octets, c->in.done));
}

/* Takes the Request's offer of TLS. */
static void start_tls(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	if (aw_conn_say_start_tls(c))
		aw_conn_set_state(c, AW_CONN_AWAIT_HELLO);
	else
		fail(c, ECONNRESET, "the peer takes no bytes: is its program stopped?");
}

static void step_request(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	bool must_offer = c->want.mode == AW_TLS_REQUIRE && !c->tls;
	struct mpa_frame frame;
	enum aw_frame_io io = receive(c, &frame);
	enum aw_setup setup;

	if (io == AW_FRAME_MORE)
		return;
	if (io != AW_FRAME_DONE && must_offer) {
		refuse_plain(c);
		return;
	}
	if (io != AW_FRAME_DONE) {
		fail_frame(c, io);
		return;
	}
	setup = aw_mpa_on_request(&c->local, &frame, &c->info.result);
	if (setup == AW_SETUP_OK && c->info.result.tls) {
		start_tls(c);
		return;
	}
	if (must_offer) {
		refuse_plain(c);
		return;
	}
	if (setup != AW_SETUP_OK) {
		fail_setup(c, setup, &frame);
		return;
	}
	conclude(c, AW_CONN_DECIDING, AW_CONN_REQUEST);
	if (c->info.result.waits)
		aw_watch_deadline(&c->watch, aw_bounds.wait_ms);
}

/* The Request may have come with the handshake's last record. */
static void step_hello(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	if (!secure(c, true))
		return;
	aw_conn_set_state(c, AW_CONN_AWAIT_REQUEST);
	step_request(c);
}

static void step_first(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	switch (aw_conn_look(c)) {
	case AW_CONN_BEGUN_NOT:
		break;
	case AW_CONN_BEGUN_TLS:
		aw_conn_set_state(c, AW_CONN_AWAIT_HELLO);
		step_hello(c);
		break;
	case AW_CONN_BEGUN_MPA:
		aw_conn_set_state(c, AW_CONN_AWAIT_REQUEST);
		step_request(c);
		break;
	}
}

/*
 * The peer learns that this end lives. A socket that has no room has none for the Reply either; that is found out when the
 * program answers.
 */
static void send_wait(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	uint8_t frame[MPA_HDR_LEN];
	size_t len = aw_mpa_wait(frame);
	ssize_t sent = aw_tls_or_plain_send(c->fd, c->tls, frame, len);

	if (sent > 0 && (size_t)sent < len)
		fail(c, ECONNRESET, "the peer takes no bytes: is its program stopped?");
	else if (++c->waits < aw_bounds.waits_max)
		aw_watch_deadline(&c->watch, aw_bounds.wait_ms);
}

static void step_decide(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	fail(c, ECONNRESET, "the peer left before its request was answered");
}

/* The bytes that have come wait for the QP, and the program for as long as it likes. */
static void quieten(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	aw_watch_events(&c->watch, aw_conn_waits[c->state].events & ~EPOLLIN);
}

static void (*const steps[])(struct aw_conn *c) = {
	[AW_CONN_WAITING] = NULL,
	[AW_CONN_CONNECTING] = step_connect,
	[AW_CONN_REFUSED] = NULL,
	[AW_CONN_SECURING] = step_secure,
	[AW_CONN_SENDING] = step_send,
	[AW_CONN_AWAIT_REPLY] = step_reply,
	[AW_CONN_AWAIT_FIRST] = step_first,
	[AW_CONN_AWAIT_HELLO] = step_hello,
	[AW_CONN_AWAIT_REQUEST] = step_request,
	[AW_CONN_DECIDING] = step_decide,
	[AW_CONN_READY] = quieten,
	[AW_CONN_OVER] = NULL,
};

static const char *const timeout_causes[] = {
	[AW_CONN_CONNECTING] =
		"no answer to tcp's connect: is the host up, and the port open in its firewall?",
	[AW_CONN_SECURING] =
		"no answer to the tls handshake: does an rdma program listen there, run with --tls "
		"require?",
	[AW_CONN_SENDING] = "the peer takes no bytes: is its program stopped?",
	[AW_CONN_AWAIT_REPLY] =
		"no mpa reply in time: does an rdma program listen on this port, and accept?",
	[AW_CONN_AWAIT_FIRST] = "no mpa request or tls handshake in time",
	[AW_CONN_AWAIT_HELLO] = "no tls handshake in time",
	[AW_CONN_AWAIT_REQUEST] = "no mpa request in time",
};

static void step(struct aw_conn *c, uint32_t events) AW_REQUIRES(c->lock)
{
	bool hung_up = events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);

	if (c->destroyed)
		return;
	if (!(events & AW_WATCH_TIMEOUT)) {
		if (c->state == AW_CONN_DECIDING && !hung_up)
			quieten(c);
		else if (steps[c->state])
			steps[c->state](c);
	} else if (c->state == AW_CONN_REFUSED || c->state == AW_CONN_WAITING) {
		connect_again(c);
	} else if (c->state == AW_CONN_DECIDING) {
		send_wait(c);
	} else if (aw_conn_waits[c->state].deadline && awaits_first_byte(c)) {
		log_waits(c);
	} else if (aw_conn_waits[c->state].deadline) {
		fail(c, ETIMEDOUT, timeout_causes[c->state]);
	}
}

/* Delivers the due event, if it has a receiver. The lock is released meanwhile. */
static void tell(struct aw_conn *c) AW_REQUIRES(c->lock)
{
	aw_conn_fn *fn = c->fn;
	void *arg = c->arg;

	if (c->destroyed || !c->due || !fn)
		return;
	bool request = c->due_event == AW_CONN_REQUEST;

	/* A Request goes to the listener's receiver; later events go to the new owner. */
	if (request)
		c->fn = NULL;
	c->due = false;
	c->telling = true;
	aw_unlock(&c->lock);
	if (request)
		aw_replied_serve();
	fn(arg, c, c->due_event);
	aw_lock(&c->lock);
	c->telling = false;
	pthread_cond_broadcast(&c->told);
}

void aw_conn_on_watch(struct aw_watch *w, uint32_t events)
{
	struct aw_conn *c = (struct aw_conn *)w;

	aw_lock(&c->lock);
	step(c, events);
	tell(c);
	aw_unlock(&c->lock);
}
